"""The details of one execution, as lines for the terminal: what was asked, what came, and how it was graded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_hillclimb.model.candidate import Budget
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.jsonable import compact
from pytest_hillclimb.model.prices import total_tokens
from pytest_hillclimb.report.terminal import MARGIN, block, one_line

_LABEL_WIDTH = 14


def missed(
    case: Case, row: Mapping[str, Any], output: object, trace: str | None, over: Sequence[str] = ()
) -> list[str]:
    """Return the lines of an execution that was scored and did not pass.

    :param output: what the app gave, None if it is not known any more
    :param trace: path of the transcript, None if there is none
    :param over: the limits of the candidate's budget that it exceeded
    """
    grade = row.get("grade")
    explanation = row.get("explanation")
    lines = [*_field("prompt", row.get("prompt", case.stored_prompt))]
    if output is not None:
        lines += _field("output", output)
    if case.expected is not None:
        lines += _field("expected", case.expected)
    for metric, value in (grade if isinstance(grade, dict) else {"score": grade}).items():
        why = explanation.get(metric) if isinstance(explanation, dict) else None
        lines += _field(metric, f"{_number(value)}" + (f"  {why}" if why else ""))
    if row.get("status") not in (None, "ok"):
        lines += _field("status", row["status"])
    if over:
        lines += _field("over budget", "\n".join(over))
    return [*lines, *_place("trace", trace)]


def unmeasured(case: Case, row: Mapping[str, Any], frames: Sequence[str], rows_file: str) -> list[str]:
    """Return the lines of an execution that could not be measured.

    :param frames: where in the user's code the error came from, innermost last
    :param rows_file: path of the errors rows
    """
    kind = row.get("error_type")
    lines = [*_field(str(row["failure_class"]), row["error"])]
    if row.get("code"):
        lines += _field("code", row["code"])
    lines += [f"  {'at':<{_LABEL_WIDTH}} {MARGIN}{one_line(frame)}" for frame in frames]
    if kind:
        lines += _field("type", kind)
    if row.get("cause"):
        lines += _field("cause", row["cause"])
    lines += _field("prompt", case.stored_prompt)
    retries = [f"{row[key]} {name}" for key, name in (("retries", "app"), ("judge_retries", "judge")) if row.get(key)]
    if why := row.get("not_retried"):
        retries.append(f"not tried again: {why}")
    if retries:
        lines += _field("retries", ", ".join(retries))
    return [*lines, *_place("recorded", rows_file)]


def headline(row: Mapping[str, Any]) -> str:
    """Return the gist of an errors row for the one-line summary."""
    kind = row.get("code") or row.get("error_type")
    return one_line(f"{row['failure_class']}: {f'{kind}: ' if kind else ''}{row['error']}", 160)


def missed_gist(row: Mapping[str, Any], over: Sequence[str] = ()) -> str:
    """Return the gist of a results row that did not pass: why, its grades, and the first explanation.

    :param over: the limits of the candidate's budget that it exceeded; none if it is the grade that did not pass
    """
    grade, explanation = row.get("grade"), row.get("explanation")
    metrics = grade if isinstance(grade, dict) else {"score": grade}
    numbers = ", ".join(f"{name} {_number(value)}" for name, value in metrics.items())
    why = next(iter(explanation.values()), "") if isinstance(explanation, dict) else ""
    problem = f"budget exceeded: {', '.join(over)}; " if over else ""
    return one_line(f"{problem}{numbers}: {why}" if why else f"{problem}{numbers}", 160)


def over_budget(row: Mapping[str, Any], budget: Budget | None = None, cost: float | None = None) -> list[str]:
    """Return the limits that a results row says were exceeded, such as ``max_cost_usd 0.3 of 0.2``.

    :param budget: the budget of the candidate, for what the limits are
    :param cost: what the scored attempt has cost in US dollars
    """
    meta = row.get("meta")
    names = meta.get("budget_exceeded") if isinstance(meta, dict) else None
    used = {"max_cost_usd": cost, "max_total_tokens": total_tokens(row.get("usage"))}
    found = [(str(name), used.get(name), getattr(budget, str(name), None)) for name in names or ()]
    return [
        name if None in (spent, limit) else f"{name} {_number(spent)} of {_number(limit)}"
        for name, spent, limit in found
    ]


def _field(label: str, value: object) -> list[str]:
    first, *rest = block(value if isinstance(value, str) else _json(value))
    return [f"  {one_line(label, 40):<{_LABEL_WIDTH}} {first}", *(f"  {'':<{_LABEL_WIDTH}} {line}" for line in rest)]


def _json(value: object) -> str:
    try:
        return compact(value)
    except (TypeError, ValueError, RecursionError):  # an expectation that only lives in memory
        return f"<{type(value).__name__}>"


def _place(label: str, path: str | None) -> list[str]:
    return [f"  {label:<{_LABEL_WIDTH}} {one_line(path)}"] if path else []


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
