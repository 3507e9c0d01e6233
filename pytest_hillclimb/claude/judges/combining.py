"""One grade of several."""

from __future__ import annotations

from typing import Any

from pytest_hillclimb.claude.judges.asking import billed_together
from pytest_hillclimb.errors import HillclimbError
from pytest_hillclimb.model.grade import Grade


def combined(*grades: Grade) -> Grade:
    """Return several grades of ``rubric`` and ``pairwise`` as one, with the sum of what the judges were billed.

    The first metric is that of the first grade. It has passed if all that have a verdict did.

    :raises HillclimbError: when two grades have the same metric (give one of them another ``name``)
    """
    metrics: dict[str, Any] = {}
    explanation: dict[str, Any] = {}
    for grade in grades:
        if taken := metrics.keys() & grade.grade.keys():
            raise HillclimbError(f"combined: two grades have the metric {min(taken)!r}; give one of them another name=")
        metrics |= grade.grade
        explanation |= grade.explanation or {}
    verdicts = [bool(grade.passed) for grade in grades if grade.passed is not None]
    passed = {"passed": all(verdicts)} if verdicts else {}
    billed = billed_together((grade.judge_model, grade.judge_usage) for grade in grades)
    return Grade(grade=metrics, explanation=explanation, **passed, **billed)
