"""What rows have cost together, and case by case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_hillclimb.model.prices import RowCost, summed


@dataclass(frozen=True, slots=True)
class Spend:
    """The cost of rows in US dollars, failed executions and failed tries included."""

    total: RowCost
    by_case: Mapping[str, RowCost]
    """By the id of the case; with candidates, that of all of them together."""

    def dearest(self, count: int) -> list[tuple[str, float]]:
        """Return the cases that cost most, dearest first."""
        known = [(case, cost.total) for case, cost in self.by_case.items() if cost.total is not None]
        return sorted(known, key=lambda pair: -pair[1])[:count]


def spend(rows: Iterable[Mapping[str, Any]], price: Callable[[Mapping[str, Any]], RowCost]) -> Spend:
    """Return what *rows* have cost; *price* returns the cost of one."""
    by_case: dict[str, list[RowCost]] = {}
    for row in rows:
        meta = row.get("meta")
        case = meta.get("case_id") if isinstance(meta, Mapping) else None
        by_case.setdefault(str(case or row.get("prompt_id") or row.get("id")), []).append(price(row))
    costs = {case: summed(of) for case, of in by_case.items()}
    return Spend(summed(costs.values()), costs)
