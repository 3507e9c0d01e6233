"""The loop state as ``_state.json`` holds it."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hillclimb.errors import StateError
from pytest_hillclimb.model.state import LoopState

KEYS = ("train_ids", "val_ids", "test_ids", "harness_paths", "harness_sha")


@pytest.mark.parametrize("raw", [{}, dict.fromkeys(KEYS)])
def test_absent_and_null_keys_are_empty(raw: dict[str, Any]) -> None:
    state = LoopState.parse(raw)
    assert state.train_ids == state.val_ids == state.test_ids == state.harness_paths == ()
    assert state.harness_sha is None


def test_ids_may_be_numbers() -> None:
    state = LoopState.parse({"train_ids": [1, 2.0, "3"], "val_ids": [True], "test_ids": [4.5]})
    assert state.splits == {"train_ids": ("1", "2", "3"), "val_ids": ("true",), "test_ids": ("4.5",)}


def test_everything_else_is_in_raw_and_cannot_be_changed() -> None:
    given = {"harness_sha": "ab", "harness_paths": ["app/x.py"], "goal": {"target": "pass"}}
    state = LoopState.parse(given)
    given["goal"] = {}
    assert (state.harness_sha, state.harness_paths) == ("ab", ("app/x.py",))
    assert state.raw["goal"] == {"target": "pass"}
    with pytest.raises(TypeError):
        state.raw["goal"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({"train_ids": "1"}, "train_ids must be a list"),
        ({"val_ids": {}}, "val_ids must be a list"),
        ({"test_ids": 0}, "test_ids must be a list"),
        ({"test_ids": ["1", ["2"]]}, r"test_ids\[1\]"),
        ({"test_ids": [None]}, r"test_ids\[0\] must be an id, not null"),
        ({"harness_paths": "app"}, "harness_paths must be a list"),
        ({"harness_paths": ["app", 1]}, r"harness_paths\[1\]"),
        ({"harness_sha": 7}, "harness_sha must be a text"),
    ],
)
def test_a_key_of_another_kind_is_refused(raw: dict[str, Any], named: str) -> None:
    with pytest.raises(StateError, match=named):
        LoopState.parse(raw)
