"""Grades in stored form: ``{metric: finite number}``, the verdict, the explanation and the judge's bill."""

from __future__ import annotations

import math
from collections import UserDict
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.grade import Grade, passed_by, read_grade

NAN, INF = float("nan"), float("inf")
Level = IntEnum("Level", "LOW HIGH")


async def coroutine() -> int:
    return 1


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (True, {"score": 1}),
        (False, {"score": 0}),
        (0.75, {"score": 0.75}),
        (3, {"score": 3}),
        (-0.0, {"score": 0}),
        (Decimal("0.30"), {"score": 0.3}),
        (Fraction(1, 4), {"score": 0.25}),
        (Level.HIGH, {"score": 2}),
        (np.float32(0.1), {"score": 0.1}),
        (np.float16(0.1), {"score": 0.1}),
        (np.float64(0.1), {"score": 0.1}),
        (np.int64(3), {"score": 3}),
        (np.uint8(3), {"score": 3}),
        (np.bool_(True), {"score": 1}),
        (np.array(0.5), {"score": 0.5}),
        ({"pass": True, "tone": 0.5}, {"pass": 1, "tone": 0.5}),
        ({"pass": np.bool_(False), "f1": np.float64(0.5)}, {"pass": 0, "f1": 0.5}),
        ({"a": -0.0}, {"a": 0}),
        (UserDict(a=1), {"a": 1}),
    ],
)
def test_sane_values_are_stored_as_plain_numbers(value: object, stored: dict[str, float]) -> None:
    for form in (value, {"grade": value}, Grade(grade=value)):
        metrics = read_grade(form).metrics
        assert metrics == stored
        assert all(type(number) in (int, float) for number in metrics.values())
        assert all(math.copysign(1, number) == 1 for number in metrics.values())


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, "grade"),
        (NAN, "grade"),
        (INF, "grade"),
        (-INF, "grade"),
        (np.float64("nan"), "grade"),
        (np.float32("inf"), "grade"),
        (Decimal("NaN"), "grade"),
        (Decimal("sNaN"), "grade"),
        (Decimal("1e400"), "grade"),
        (Fraction(10**400), "grade"),
        ({"a": 1, "b": NAN}, "grade.b"),
        ({"a": None}, "grade.a"),
        ({}, "grade"),
        ("0.8", "grade"),
        ("pass", "grade"),
        ({"score": "1"}, "grade.score"),
        ([1, 0], "grade"),
        (np.array([1, 2]), "grade"),
        (np.array(["x"]), "grade"),
        (np.complex64(1), "grade"),
        (10**400, "grade"),
        ({"n": -(10**400)}, "grade.n"),
        (1j, "grade"),
        (object(), "grade"),
        ((x for x in [1]), "grade"),
        ({1: 0.5}, "grade"),
        ({"": 0.5}, "grade"),
        ({"a": {"b": 1}}, "grade.a"),
        (b"1", "grade"),
    ],
)
def test_what_is_no_number_is_refused_with_its_path(value: object, path: str) -> None:
    for form in (value, {"grade": value}, Grade(grade=value)):
        with pytest.raises(BadValueError) as caught:
            read_grade(form)
        assert caught.value.path == path


def test_a_coroutine_is_no_grade() -> None:
    value = coroutine()
    with pytest.raises(BadValueError, match="coroutine"):
        read_grade(value)
    value.close()


@pytest.mark.parametrize(
    ("value", "passed"),
    [
        (True, True),
        (False, False),
        (np.bool_(False), False),
        (1, None),
        (0.0, None),
        ({"score": True}, None),
        ({"pass": 1}, True),
        ({"pass": True, "tone": 0}, True),
        ({"pass": 0, "tone": 1}, False),
        ({"pass": 0.99}, False),
        ({"Pass": 1}, None),
        (Grade(grade=False, passed=True), True),
        (Grade(grade={"pass": 1}, passed=False), False),
        (Grade(grade={"pass": 1}, passed=np.bool_(False)), False),
        (Grade(grade=0.3, passed=1), True),
        (Grade(grade={"pass": 1}, passed=None), True),
        ({"grade": 0.3, "passed": False}, False),
    ],
)
def test_the_verdict_is_as_given_else_a_bool_else_the_metric_pass(value: object, passed: bool | None) -> None:
    assert read_grade(value).passed is passed


@pytest.mark.parametrize("passed", ["yes", 2, 0.5, NAN, [True]])
def test_a_verdict_that_is_neither_true_nor_false_is_refused(passed: object) -> None:
    with pytest.raises(BadValueError) as caught:
        read_grade({"grade": 1, "passed": passed})
    assert caught.value.path == "passed"


@pytest.mark.parametrize(
    ("metrics", "verdict"), [({"pass": 1}, True), ({"pass": 1.0}, True), ({"pass": 0}, False), ({"score": 1}, None)]
)
def test_recorded_metrics_say_the_same_verdict(metrics: dict[str, float], verdict: bool | None) -> None:
    assert passed_by(metrics) is verdict


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("grade", "explanation", "stored"),
    [
        (True, "a bare string", {"score": "a bare string"}),
        ({"pass": 1}, {"pass": "why"}, {"pass": "why"}),
        ({"pass": 1}, None, None),
        ({"pass": 1}, {"pass": 7}, {"pass": "7"}),
        ({"a": 1, "b": 0}, "one text, two metrics", {"a": "one text, two metrics"}),
        ({"a": 1}, {"a": None, "other": "kept"}, {"other": "kept"}),
        ({"a": 1}, ["x", 1], {"a": "['x', 1]"}),
        ({"a": 1}, "", {"a": ""}),
        ({"a": 1}, {"a": Unspeakable()}, {"a": "<Unspeakable>"}),
    ],
)
def test_explanations_are_stored_as_text_by_metric(grade: object, explanation: object, stored: object) -> None:
    assert read_grade({"grade": grade, "explanation": explanation}).explanation == stored
    assert read_grade(Grade(grade=grade, explanation=explanation)).explanation == stored


@pytest.mark.parametrize(
    ("given", "judge"),
    [
        ({}, {}),
        ({"judge_model": "j"}, {"judge_model": "j"}),
        ({"judge_model": None, "judge_usage": None}, {"judge_model": None, "judge_usage": None}),
        ({"judge_usage": {"output_tokens": np.int64(3)}}, {"judge_usage": {"output_tokens": 3}}),
    ],
)
def test_the_judge_is_kept_as_given_none_included(given: dict[str, Any], judge: dict[str, Any]) -> None:
    assert read_grade({"grade": 1, **given}).judge == judge
    assert read_grade(Grade(grade=1, **given)).judge == judge


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"judge_model": 5}, "judge_model"),
        ({"judge_usage": "3 tokens"}, "judge_usage"),
        ({"judge_usage": {"output_tokens": NAN}}, "judge_usage.output_tokens"),
    ],
)
def test_a_judge_that_cannot_be_stored_is_refused(given: dict[str, Any], path: str) -> None:
    with pytest.raises(BadValueError) as caught:
        read_grade({"grade": 1, **given})
    assert caught.value.path == path
