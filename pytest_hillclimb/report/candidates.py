"""What came of each candidate, as a table: the four classes of outcomes, what was spent, and the means of metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_hillclimb.engine.outcome import CANDIDATE_FAILURE, COMPLETED, INFRASTRUCTURE_FAILURE, SKIPPED
from pytest_hillclimb.model.candidate import MAX_CANDIDATE_ID
from pytest_hillclimb.model.grade import PASS_METRIC
from pytest_hillclimb.model.prices import RowCost, summed
from pytest_hillclimb.report.money import dollars, is_partial
from pytest_hillclimb.report.terminal import one_line
from pytest_hillclimb.stats.means import Mean

_CLASSES = {COMPLETED: "completed", CANDIDATE_FAILURE: "failed", INFRASTRUCTURE_FAILURE: "infra", SKIPPED: "skipped"}
_METRICS = 3


def candidate_lines(
    counted: Iterable[tuple[str, str]],
    costs: Mapping[str | None, Sequence[RowCost]],
    metrics: Mapping[str, Mapping[str, Mean]],
) -> list[str]:
    """Return the table.

    :param counted: candidate id and class of each selected execution
    :param costs: what the rows of each candidate have cost in this session
    :param metrics: the means of each candidate over the whole variant
    """
    counts: dict[str, dict[str, int]] = {}
    for candidate, classification in counted:
        of = counts.setdefault(candidate, dict.fromkeys(_CLASSES, 0))
        of[classification] += 1
    every = dict.fromkeys(name for found in metrics.values() for name in found)
    names = sorted(every, key=lambda name: name != PASS_METRIC)[:_METRICS]
    titles = [*_CLASSES.values(), "cost USD", *(one_line(name, 16) for name in names)]
    rows = [
        (
            one_line(candidate, MAX_CANDIDATE_ID),
            [
                *(str(number) for number in of.values()),
                money(summed(costs.get(candidate, ()))),
                *(_mean(metrics.get(candidate, {}).get(name)) for name in names),
            ],
        )
        for candidate, of in counts.items()
    ]
    widths = [max(len(title), *(len(row[1][i]) for row in rows)) for i, title in enumerate(titles)] if rows else []
    first = max((len(name) for name, _ in rows), default=0)
    table = [("candidate", titles), *rows] if rows else []
    return [
        f"{name:<{max(first, 10)}} " + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        for name, cells in table
    ]


def money(cost: RowCost) -> str:
    """Return a cost in US dollars; ``-`` when nothing is priced, with a ``+`` when some of it is not known."""
    total = cost.total
    if total is None:
        return "-" if not cost.unpriced else "not priced"
    return f"{dollars(total)}{'+' if is_partial(cost) else ''}"


def _mean(mean: Mean | None) -> str:
    return "-" if mean is None else f"{mean.value:.3f}"
