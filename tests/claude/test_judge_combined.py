"""One grade of several: metrics, verdicts, and the sum of what judges were billed."""

from __future__ import annotations

import pytest

from pytest_hillclimb.claude.judges import combined
from pytest_hillclimb.errors import HillclimbError
from pytest_hillclimb.model.grade import Grade

ONE = {"input_tokens": 1, "output_tokens": 2}
TWO = {"input_tokens": 10, "output_tokens": 20}
THREE = {"input_tokens": 11, "output_tokens": 22}


def grade(name: str, model: str | None = None, usage: object = None, **fields: object) -> Grade:
    billed = {} if model is None else {"judge_model": model, "judge_usage": usage}
    return Grade(grade={name: 1}, explanation={name: f"why {name}"}, **billed, **fields)


def test_metrics_and_reasons_stand_side_by_side() -> None:
    both = combined(grade("b", "m", ONE), grade("a", "m", TWO))
    assert list(both.grade) == ["b", "a"]
    assert both.explanation == {"b": "why b", "a": "why a"}
    assert (both.judge_model, both.judge_usage) == ("m", THREE)


def test_different_judges_are_told_apart_because_they_have_different_prices() -> None:
    both = combined(combined(grade("a", "m", ONE), grade("b", "n", TWO)), grade("c", "m", TWO))
    assert both.judge_usage == {"input_tokens": 21, "output_tokens": 42, "by_model": {"m": THREE, "n": TWO}}


def test_a_grade_without_a_call_adds_nothing() -> None:
    assert combined(grade("a"), grade("b", "m", ONE)).judge_usage == ONE
    assert "judge_usage" not in combined(grade("a"), grade("b")).model_fields_set


@pytest.mark.parametrize(
    ("verdicts", "passed"), [((True, None), True), ((True, False), False), ((False, None), False), ((None, None), None)]
)
def test_all_verdicts_that_there_are_must_be_good(verdicts: tuple[bool | None, ...], passed: bool | None) -> None:
    grades = [grade(f"m{n}", **({} if each is None else {"passed": each})) for n, each in enumerate(verdicts)]
    assert combined(*grades).passed is passed


def test_a_metric_has_one_meaning() -> None:
    with pytest.raises(HillclimbError, match="'a'"):
        combined(grade("a"), grade("a"))
