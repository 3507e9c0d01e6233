"""Transcripts: byte for byte what ``JSON.stringify(turns, null, 2)`` writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.flow.traces import encode_turns

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
TURNS = st.lists(st.dictionaries(TEXT, VALUES, max_size=3) | VALUES, max_size=4)


@given(TURNS)
@settings(derandomize=True, deadline=None)
def test_same_as_the_standard_library(turns: list[Any]) -> None:
    assert encode_turns(turns) == (json.dumps(turns, indent=2, ensure_ascii=False).encode(), None)


@given(TURNS, st.integers(2, 400))
@settings(derandomize=True, deadline=None)
def test_cap_keeps_whole_turns_and_tells_what_is_missing(turns: list[Any], cap: int) -> None:
    whole = encode_turns(turns).data
    data, truncated = encode_turns(turns, cap)
    kept = json.loads(data)
    assert len(data) <= cap
    assert kept == turns[: len(kept)]
    if len(whole) <= cap:
        assert (data, truncated) == (whole, None)
        return
    assert truncated == {
        "kept_turns": len(kept),
        "turns": len(turns),
        "kept_bytes": len(data),
        "bytes": len(whole),
    }
    assert len(encode_turns(turns[: len(kept) + 1]).data) > cap, "one more would have fit"


def test_what_follows_a_turn_that_is_too_large_is_not_kept() -> None:
    data, truncated = encode_turns(["a", "b" * 100, "c"], 50)
    assert json.loads(data) == ["a"]
    assert truncated is not None
    assert truncated["kept_turns"] == 1


def test_the_usual_shape() -> None:
    turns = [{"role": "user", "content": 'Where is "it"?\n'}, {"role": "tool_result", "content": "Übersicht \u2028"}]
    assert encode_turns(turns).data.decode() == (
        '[\n  {\n    "role": "user",\n    "content": "Where is \\"it\\"?\\n"\n  },\n'
        '  {\n    "role": "tool_result",\n    "content": "Übersicht \u2028"\n  }\n]'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e21, "1e+21"),
        (123456789012345680000.0, "123456789012345680000"),
        (True, "true"),
        (None, "null"),
        ([], "[]"),
        ({}, "{}"),
        ("\x00\x1f\x7f/", '"\\u0000\\u001f\x7f/"'),
        ("a\ud800b\udfff", '"a\\ud800b\\udfff"'),
    ],
)
def test_values_as_javascript_writes_them(value: object, text: str) -> None:
    assert encode_turns([value]).data == f"[\n  {text}\n]".encode()


def test_empty_transcript() -> None:
    assert encode_turns([], 2) == (b"[]", None)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_number_that_json_lacks(value: float) -> None:
    with pytest.raises(BadValueError, match="transcript"):
        encode_turns([{"n": value}])
