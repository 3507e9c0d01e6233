"""The two kinds of rows of a variant, in the key order of the public format. A key that is not given is absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.grade import Graded
from pytest_hillclimb.model.jsonable import plain
from pytest_hillclimb.model.run import Run

Row = dict[str, Any]

_FIXED = frozenset({"prompt_id", "rep", "grade", "explanation", "passed"})


def results_row(
    case: Case,
    key: tuple[str, int],
    run: Run,
    graded: Graded,
    *,
    latency_s: float,
    perf: Mapping[str, Any],
    meta: Mapping[str, Any],
) -> Row:
    """Return the row of a scored execution.

    :param key: prompt_id and repetition
    :param latency_s: seconds of the last app attempt alone
    :param perf: the user's extra numbers; they may override any key but those that name and grade the row
    :param meta: what the engine adds to the case's meta
    """
    prompt_id, rep = key
    row: Row = {"prompt_id": prompt_id, "rep": rep, "prompt": case.stored_prompt}
    if "tags" in case.model_fields_set:
        row["tags"] = list(case.tags)
    if "attachments" in case.model_fields_set:
        row["attachments"] = [plain(a, "attachments") for a in case.attachments]
    if meta or "meta" in case.model_fields_set:
        row["meta"] = {**case.meta, **meta}
    row.update(given(run, "model", "usage", "stop_reason"))
    row["status"] = run.resolved_status
    row.update(_judge(run, graded.judge))
    row["latency_s"] = latency_s
    row.update(given(run, "tool_calls", "web_searches"))
    row.update({key: value for key, value in perf.items() if _may_set(key, value)})
    if "meta" in perf and meta:
        row["meta"] = {**row["meta"], **meta}
    row["grade"] = graded.metrics
    if graded.explanation is not None:
        row["explanation"] = graded.explanation
    if graded.passed is not None:
        row["passed"] = graded.passed
    return row


def _may_set(key: str, value: object) -> bool:
    """Return whether a user's extra number may stand in a row: not if the row could then not be read back."""
    if key in _FIXED or (key == "status" and value == "error"):
        return False
    return key != "meta" or isinstance(value, dict)


def errors_row(
    case: Case,
    key: tuple[str, int],
    *,
    failure_class: str,
    error: str,
    retries: int,
    judge_retries: int,
    billed: Mapping[str, Any],
    latency_s: float,
    more: Mapping[str, Any],
) -> Row:
    """Return the row of an execution that could not be measured.

    :param key: prompt_id and repetition
    :param billed: what is known of model and usage, of the app and of the judge
    :param latency_s: seconds of the whole execution, waits included
    :param more: further keys, such as the code of an infrastructure failure
    """
    prompt_id, rep = key
    row: Row = {"prompt_id": prompt_id, "rep": rep}
    if case.safe_id != case.id:
        row["original_id"] = case.id
    row.update(failure_class=failure_class, error=error, retries=retries, judge_retries=judge_retries)
    row.update({key: billed[key] for key in ("model", "usage", "judge_model", "judge_usage") if key in billed})
    return {**row, "latency_s": latency_s, **more}


def given(run: Run, *names: str) -> dict[str, Any]:
    """Return those of the named fields of a run that its author gave, None included."""
    return {name: getattr(run, name) for name in names if name in run.model_fields_set}


def _judge(run: Run, judge: Mapping[str, Any]) -> dict[str, Any]:
    fallback = given(run, "judge_model", "judge_usage")
    keys = [key for key in ("judge_model", "judge_usage") if key in judge or key in fallback]
    return {key: judge[key] if judge.get(key) is not None or key not in fallback else fallback[key] for key in keys}
