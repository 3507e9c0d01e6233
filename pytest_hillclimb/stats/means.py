"""Means the way report builders of the flow directory take them: per case over its ok rows, then over cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Mean(NamedTuple):
    """A mean over cases; ``cases`` and ``rows`` say how many it rests on."""

    value: float
    cases: int
    rows: int


def means(scores: Iterable[tuple[str, str | None, Mapping[str, float]]]) -> dict[str, Mean]:
    """Return the mean of each metric.

    :param scores: id, status and grades of each row; only rows whose status is ``ok`` or absent count
    """
    sums: dict[str, dict[str, tuple[float, int]]] = {}
    for prompt_id, status, grade in scores:
        if status not in (None, "ok"):
            continue
        for metric, value in grade.items():
            total, count = sums.setdefault(metric, {}).get(prompt_id, (0.0, 0))
            sums[metric][prompt_id] = (total + value, count + 1)
    return {metric: _mean(cases) for metric, cases in sums.items()}


def _mean(cases: Mapping[str, tuple[float, int]]) -> Mean:
    per_case = [total / count for total, count in cases.values()]
    return Mean(sum(per_case) / len(per_case), len(cases), sum(count for _, count in cases.values()))
