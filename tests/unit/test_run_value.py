"""Reading what the app gave: accepted forms, refused values with their path, and what was billed for it."""

from __future__ import annotations

from collections import UserDict
from types import SimpleNamespace
from typing import Any

import pytest
from anthropic.types import Usage

from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.case import Attachment
from pytest_hillclimb.model.run import Run, Turn, billed, read_run

NAN = float("nan")
USAGE = {"input_tokens": 3, "output_tokens": 1}


def test_a_run_and_a_mapping_of_the_same_keys_read_the_same() -> None:
    values: dict[str, Any] = {"output": "hi", "model": "m", "usage": USAGE, "stop_reason": "end_turn", "tool_calls": 2}
    assert read_run(values) == read_run(Run(**values)) == read_run(UserDict(values)) == Run(**values)


def test_every_key_is_optional() -> None:
    run = read_run({})
    assert run.output is None
    assert run.transcript is None
    assert run.model_fields_set == set()


def test_a_key_given_as_none_stays_given() -> None:
    assert read_run({"model": None, "usage": None}).model_fields_set == {"model", "usage"}


def test_other_keys_are_kept_for_grader_and_perf() -> None:
    run = read_run({"output": 1, "latency_ms": (1, 2)})
    assert run.model_extra == {"latency_ms": [1, 2]}


def test_turns_of_any_kind_become_plain_data_with_only_what_was_given() -> None:
    turns = (
        Turn(role="user", content="hi", mood="calm"),
        {"role": "assistant", "content": [{"type": "text", "text": "ho"}], "thinking": None},
        Turn(role="tool_result", attachments=[Attachment(kind="json", ref="baseline/out/a_rep0/x.json")]),
    )
    assert read_run({"transcript": turns}).transcript == [
        {"role": "user", "content": "hi", "mood": "calm"},
        {"role": "assistant", "content": [{"type": "text", "text": "ho"}], "thinking": None},
        {"role": "tool_result", "attachments": [{"kind": "json", "ref": "baseline/out/a_rep0/x.json"}]},
    ]


def test_an_empty_transcript_is_not_an_absent_one() -> None:
    assert read_run({"transcript": []}).transcript == []


def test_the_usage_object_of_an_sdk_is_read_as_a_mapping() -> None:
    usage = read_run({"usage": Usage(input_tokens=3, output_tokens=1, cache_read_input_tokens=2)}).usage
    assert usage == {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 2}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, "run"),
        ("text", "run"),
        (5, "run"),
        ([("output", "x")], "run"),
        ({"output": NAN}, "run.output"),
        ({"output": {"items": [1, {"score": float("inf")}]}}, "run.output.items[1].score"),
        ({"output": object()}, "run.output"),
        ({"output": b"bytes"}, "run.output"),
        ({"output": {1: "x"}}, "run.output"),
        ({"transcript": "hi"}, "run.transcript"),
        ({"transcript": {"role": "user"}}, "run.transcript"),
        ({"transcript": [{"role": "user"}, "hi"]}, "run.transcript[1]"),
        ({"transcript": [{"content": {"scores": [0.5, NAN]}}]}, "run.transcript[0].content.scores[1]"),
        ({"usage": {"input_tokens": NAN}}, "run.usage.input_tokens"),
        ({"usage": 5}, "run.usage"),
        ({"model": 5}, "run.model"),
        ({"stop_reason": ["end_turn"]}, "run.stop_reason"),
        ({"status": 200}, "run.status"),
        ({"judge_usage": []}, "run.judge_usage"),
        ({"tool_calls": "many"}, "run.tool_calls"),
        ({"mine": {"deep": {1, 2}}}, "run.mine.deep"),
    ],
)
def test_what_cannot_be_a_run_is_refused_with_its_path(value: object, path: str) -> None:
    with pytest.raises(BadValueError) as caught:
        read_run(value)
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: ")


def test_data_that_contains_itself_is_refused() -> None:
    turn: dict[str, Any] = {"role": "user"}
    turn["content"] = [turn]
    with pytest.raises(BadValueError, match="contains itself"):
        read_run({"transcript": [turn]})


@pytest.mark.parametrize(
    ("status", "stop_reason", "resolved"),
    [
        (None, None, "ok"),
        (None, "end_turn", "ok"),
        (None, "refusal", "ok"),
        (None, "pause_turn", "ok"),
        (None, "tool_use", "ok"),
        (None, "some_future_reason", "ok"),
        (None, "max_tokens", "truncated"),
        (None, "model_context_window_exceeded", "truncated"),
        ("", "max_tokens", "truncated"),
        ("ok", "max_tokens", "ok"),
        ("truncated", "end_turn", "truncated"),
        ("odd", None, "odd"),
    ],
)
def test_status_is_as_given_or_follows_the_stop_reason(
    status: str | None, stop_reason: str | None, resolved: str
) -> None:
    assert Run(status=status, stop_reason=stop_reason).resolved_status == resolved


class Billed(Exception):
    def __init__(self) -> None:
        self.model, self.usage = "m", USAGE
        self.judge_model, self.judge_usage = "j", {"output_tokens": 9}


class Hostile(Exception):
    usage = USAGE

    @property
    def model(self) -> str:
        raise RuntimeError("not you")

    @property
    def judge_usage(self) -> dict[str, Any]:
        raise KeyError("nor you")


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (None, {}),
        (ValueError("x"), {}),
        ("text", {}),
        ({"usage": USAGE, "output": NAN}, {"usage": USAGE}),
        ({"usage": {"input_tokens": NAN}, "model": "m"}, {"model": "m"}),
        ({"usage": 3, "model": 5, "judge_model": "j"}, {"judge_model": "j"}),
        ({"usage": Usage(input_tokens=3, output_tokens=1)}, {"usage": USAGE}),
        ({"usage": None, "model": None}, {}),
        (Run(output=NAN, usage=USAGE, model="m"), {"model": "m", "usage": USAGE}),
        (Billed(), {"model": "m", "usage": USAGE, "judge_model": "j", "judge_usage": {"output_tokens": 9}}),
        (Hostile(), {"usage": USAGE}),
        (SimpleNamespace(usage=USAGE), {"usage": USAGE}),
    ],
)
def test_what_was_billed_is_read_as_far_as_it_can_be(value: object, known: dict[str, Any]) -> None:
    assert billed(value) == known
