"""Strict JSON: what is accepted, what is refused and where, and how it is written."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.jsonable import compact, encode, escape_surrogates, number, plain

quick = settings(derandomize=True, deadline=None, max_examples=200)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
json_values = st.recursive(scalars, lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=10)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Answer(BaseModel):
    text: str
    note: str = "unset"


@quick
@given(json_values)
def test_plain_json_is_kept(value: Any) -> None:
    assert plain(value, "x") == value


@quick
@given(json_values)
def test_compact_text_is_one_utf8_line_that_reads_back(value: Any) -> None:
    text = compact(value)
    assert "\n" not in text
    assert json.loads(encode(text)) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, (2,)), [1, [2]]),
        (Decimal("1.5"), 1.5),
        (Fraction(1, 4), 0.25),
        (Colour.RED, "red"),
        (Level.LOW, 1),
        (np.float32(0.1), 0.1),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (Answer(text="hi"), {"text": "hi"}),
    ],
)
def test_kin_of_json_becomes_json(value: object, expected: object) -> None:
    result = plain({"v": value}, "x")["v"]
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [0, float("nan")]}, "output.a[1]"),
        ({"a": {"b": float("inf")}}, "output.a.b"),
        ([{1, 2}], "output[0]"),
        ({"a": b"raw"}, "output.a"),
        ({"a": {3: "x"}}, "output.a"),
        ([Decimal("NaN")], "output[0]"),
        ([np.array([1, 2])], "output[0]"),
        (object(), "output"),
    ],
)
def test_anything_else_is_refused_with_its_path(value: object, path: str) -> None:
    with pytest.raises(BadValueError) as caught:
        plain(value, "output")
    assert caught.value.path == path
    assert caught.value.message.startswith(f"{path}: ")


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(BadValueError, match="contains itself"):
        plain(loop, "x")


@pytest.mark.parametrize("value", ["1", None, [1], 10**400, math.nan, Decimal("Infinity"), np.array([1])])
def test_what_is_no_sane_number_is_refused(value: object) -> None:
    with pytest.raises(BadValueError):
        number(value, "grade")


def test_lone_surrogates_are_escaped_and_other_text_stays_readable() -> None:
    text = compact({"k": "caf\u00e9 \U0001f600 \ud835"})
    assert text == '{"k":"caf\u00e9 \U0001f600 \\ud835"}'
    assert json.loads(text) == {"k": "caf\u00e9 \U0001f600 \ud835"}
    assert escape_surrogates("\udcb2") == "\\udcb2"
    assert encode("\udcb2") == "\ufffd".encode()
