"""Answers put together from events, whatever is missing from them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages_server import events_of, message, tool_use

from pytest_hillclimb.claude.answer import Answer
from pytest_hillclimb.claude.transcript import Transcriber

WHOLE = message(
    [
        {"type": "thinking", "thinking": "Which capital? That of France.", "signature": "sig"},
        {"type": "text", "text": "The capital of France is Paris.", "citations": [{"type": "page", "n": 1}]},
        tool_use("look_up", {"place": "Paris", "depth": [1, {"a": "ü"}]}),
        {"type": "web_search_tool_result", "tool_use_id": "x", "content": [{"type": "web_search_result", "url": "u"}]},
    ],
    usage={"input_tokens": 9, "output_tokens": 31, "server_tool_use": {"web_search_requests": 2}},
    stop_reason="tool_use",
)
EVENTS = [data for _, data in events_of(WHOLE)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from([event["type"] for event in EVENTS] + ["ping", "error", "of_the_future"])
ODD_EVENTS = st.builds(
    lambda kind, fields: {**fields, "type": kind},
    KINDS,
    st.fixed_dictionaries(
        {},
        optional={
            "index": st.integers(0, 3),
            "message": JSON | st.just(EVENTS[0]["message"]),
            "content_block": JSON | st.just(WHOLE["content"][1]),
            "delta": JSON | st.just({"type": "text_delta", "text": "x"}),
            "usage": JSON | st.just({"output_tokens": 3}),
        },
    ),
)


def read(answer: Answer) -> list[Any]:
    """Read everything there is to read."""
    turns = Transcriber(None).answer(answer.content)
    return [answer.text, answer.model, answer.usage, answer.stop_reason, answer.tool_uses, answer.web_searches, turns]


def test_all_events_make_the_message() -> None:
    answer = Answer.of_events(EVENTS)
    assert dict(answer.message) == WHOLE
    assert (answer.whole, answer.text, answer.web_searches) == (True, "The capital of France is Paris.", 2)


@pytest.mark.parametrize("kept", range(len(EVENTS)))
def test_a_part_of_the_events_tells_a_part_of_the_message(kept: int) -> None:
    answer = Answer.of_events(EVENTS[:kept])
    assert not answer.whole
    assert WHOLE["content"][1]["text"].startswith(answer.text)
    assert answer.model == (WHOLE["model"] if kept else None)
    read(answer)


@given(st.lists(ODD_EVENTS | JSON, max_size=8))
def test_no_event_is_too_odd(events: list[Any]) -> None:
    read(Answer.of_events(events))


@given(JSON | st.fixed_dictionaries({"content": JSON, "usage": JSON, "model": JSON, "stop_reason": JSON}))
def test_no_body_is_too_odd(body: Any) -> None:
    read(Answer.of_json(body))


@given(st.fixed_dictionaries({"system": JSON, "messages": JSON}))
def test_no_request_is_too_odd(body: Any) -> None:
    Transcriber(None).request(body)


def test_searches_are_counted_by_their_blocks_where_usage_tells_none() -> None:
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    assert Answer.of_json(message([block, block])).web_searches == 2
