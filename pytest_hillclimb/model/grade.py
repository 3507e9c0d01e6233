"""What the grader gave, and the one form in which it is stored: ``{metric: finite number}``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.jsonable import number, plain

BARE_METRIC = "score"
PASS_METRIC = "pass"

Metrics = dict[str, int | float]


class Grade(BaseModel):
    """What ``grade_case`` may return; a mapping with a ``grade`` key, a mapping of metrics or a bare value work too.

    ``grade`` is ``{metric: number}`` or one bare bool or number; ``explanation`` is ``{metric: text}`` or one text;
    ``passed`` overrides the verdict; ``judge_model`` and ``judge_usage`` say what a model as judge was billed.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    grade: Any
    explanation: Any = None
    passed: Any = None
    judge_model: Any = None
    judge_usage: Any = None


@dataclass(frozen=True, slots=True)
class Graded:
    """A grade in stored form. ``judge`` holds the judge's keys that were given, None included."""

    metrics: Metrics
    explanation: dict[str, str] | None = None
    passed: bool | None = None
    judge: dict[str, Any] = field(default_factory=dict)


def read_grade(value: object) -> Graded:
    """Return what the grader gave in stored form.

    :raises BadValueError: with the path of what cannot be a grade
    """
    given = _fields(value)
    raw = given["grade"]
    metrics, bare_bool = _metrics(raw)
    passed = _passed(given.get("passed"))
    if passed is None:
        passed = bare_bool if bare_bool is not None else passed_by(metrics)
    return Graded(metrics, _explanation(given.get("explanation"), metrics), passed, _judge(given))


def passed_by(metrics: Mapping[str, Any]) -> bool | None:
    """Return the verdict of the metric ``pass`` (1 means passed), None when there is no such metric."""
    return metrics[PASS_METRIC] == 1 if PASS_METRIC in metrics else None


def _fields(value: object) -> Mapping[str, Any]:
    if isinstance(value, Grade):
        return {name: getattr(value, name) for name in value.model_fields_set}
    if isinstance(value, Mapping) and "grade" in value:
        return value
    return {"grade": value}


def _metrics(raw: object) -> tuple[Metrics, bool | None]:
    if not isinstance(raw, Mapping):
        if raw is None:
            raise BadValueError.at("grade", "expected a bool, a number or {metric: number}, got None")
        single = number(raw, "grade")
        return {BARE_METRIC: _stored(single)}, single if isinstance(single, bool) else None
    if not raw:
        raise BadValueError.at("grade", "expected at least one metric, got an empty mapping")
    return {_name(name): _metric(value, f"grade.{name}") for name, value in raw.items()}, None


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise BadValueError.at("grade", f"expected metric names as text that is not empty, got {name!r:.80}")
    return str(name)


def _metric(value: object, path: str) -> int | float:
    if value is None:
        raise BadValueError.at(path, "expected a number, got None")
    return _stored(number(value, path))


def _stored(value: float | bool) -> int | float:
    return int(value) if isinstance(value, bool) or value == 0 else value


def _passed(value: object) -> bool | None:
    if value is None:
        return None
    verdict = number(value, "passed")
    if verdict not in (0, 1):
        raise BadValueError.at("passed", f"expected true or false, got {verdict}")
    return bool(verdict)


def _explanation(value: object, metrics: Metrics) -> dict[str, str] | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {str(k): _words(v) for k, v in value.items() if v is not None}
    return {next(iter(metrics)): _words(value)}


def _words(value: object) -> str:
    try:
        return str.__str__(str(value))
    except BaseException:  # a paid grade is not lost to an explanation that cannot be spelled
        return f"<{type(value).__name__}>"


def _judge(given: Mapping[str, Any]) -> dict[str, Any]:
    judge = {key: plain(given[key], key) for key in ("judge_model", "judge_usage") if key in given}
    if not isinstance(judge.get("judge_model"), (str, type(None))):
        raise BadValueError.at("judge_model", f"expected text, got {type(given['judge_model']).__name__}")
    if not isinstance(judge.get("judge_usage"), (dict, type(None))):
        raise BadValueError.at("judge_usage", f"expected a mapping, got {type(given['judge_usage']).__name__}")
    return judge
