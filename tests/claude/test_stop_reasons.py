"""How an answer ended decides what becomes of it: a row, a truncated row, or no measurement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from claude_lab import ClaudeLab, async_client
from messages_server import MODEL, USAGE, MessagesServer, Play, answer, message, tool_use

from pytest_hillclimb import claude

MakeLab = Callable[..., ClaudeLab]
TEXT = [{"type": "text", "text": "Par"}]
NO_MESSAGES = [b"[]", b"null", b'"text"', b"{}", b'{"type": "error", "error": {"type": "x"}}', b"{broken", b""]
NO_MESSAGES += [b"\xff\xfe{", b"<html>log in</html>", b"data: {broken\n\n"]
both = pytest.mark.parametrize("stream", [True, False])


def asking(server: MessagesServer, call: Any = claude.message, **request: Any) -> Any:
    client = async_client(server)

    async def run_case(case: Any, ctx: Any) -> Any:
        return await call(ctx, client, messages="hi", **request)

    return run_case


@both
@pytest.mark.parametrize("call", [claude.message, claude.conversation])
@pytest.mark.parametrize(
    ("reason", "content", "status"),
    [
        ("end_turn", TEXT, "ok"),
        ("stop_sequence", TEXT, "ok"),
        ("max_tokens", TEXT, "truncated"),
        ("model_context_window_exceeded", TEXT, "truncated"),
        ("refusal", [], "ok"),
        ("refusal", TEXT, "ok"),
        ("end_turn", [], "ok"),
        ("end_turn", [{"type": "thinking", "thinking": "hm", "signature": "s"}], "ok"),
        ("max_tokens", [tool_use("f", {"a": 1})], "truncated"),
    ],
)
def test_outcomes_that_are_graded(
    claude_lab: MakeLab,
    messages_server: MessagesServer,
    call: Any,
    reason: str,
    content: list[Any],
    status: str,
    stream: bool,
) -> None:
    messages_server.play(answer(content, stop_reason=reason))
    graded: list[Any] = []

    def grade_case(case: Any, run: Any, ref: Any, ctx: Any) -> bool:
        graded.append((run.stop_reason, run.output))
        return True

    row = claude_lab(asking(messages_server, call, stream=stream), grade_case).scored()
    assert (row["status"], row["stop_reason"]) == (status, reason)
    assert graded == [(reason, "Par" if content is TEXT else "")]
    assert len(messages_server.requests) == 1


@both
@pytest.mark.parametrize(
    ("reason", "content", "failure_class"),
    [
        ("pause_turn", TEXT, "incomplete"),
        ("tool_use", [tool_use("f", {})], "incomplete"),
        (None, TEXT, "incomplete"),
        ("", TEXT, "incomplete"),
        ("some_future_reason", TEXT, "unknown_stop_reason"),
    ],
)
def test_outcomes_that_are_no_measurement(
    claude_lab: MakeLab,
    messages_server: MessagesServer,
    reason: str | None,
    content: list[Any],
    failure_class: str,
    stream: bool,
) -> None:
    messages_server.play(answer(content, stop_reason=reason))
    row = claude_lab(asking(messages_server, stream=stream)).failed()
    assert (row["failure_class"], row["model"], row["usage"]) == (failure_class, MODEL, USAGE)
    assert (row["retries"], len(messages_server.requests)) == (0, 1)


@pytest.mark.parametrize(
    ("reason", "content", "failure_class"),
    [
        ("pause_turn", [], "incomplete"),
        ("tool_use", TEXT, "incomplete"),
        (None, TEXT, "incomplete"),
        ("some_future_reason", [tool_use("f", {})], "unknown_stop_reason"),
    ],
)
def test_a_conversation_cannot_go_on_without_something_to_go_on_with(
    claude_lab: MakeLab, messages_server: MessagesServer, reason: str | None, content: list[Any], failure_class: str
) -> None:
    messages_server.play(answer(content, stop_reason=reason))
    row = claude_lab(asking(messages_server, claude.conversation)).failed()
    assert (row["failure_class"], row["usage"], len(messages_server.requests)) == (failure_class, USAGE, 1)


def test_a_stream_without_its_last_events_is_cut_off(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(Play(message("x" * 100), keep=4))
    row = claude_lab(asking(messages_server)).failed()
    assert (row["failure_class"], row["model"]) == ("incomplete", MODEL)
    assert row["usage"] == {**USAGE, "output_tokens": 1}
    assert "cut off" in row["error"]


def test_a_stream_of_nothing_is_incomplete(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(Play(events="event: ping\ndata: {}"))
    row = claude_lab(asking(messages_server)).failed()
    assert row["failure_class"] == "incomplete"
    assert "usage" not in row


@both
@pytest.mark.parametrize("kind", ["application/json", "text/html; charset=utf-8", "text/event-stream"])
@pytest.mark.parametrize("body", NO_MESSAGES)
def test_an_address_that_does_not_answer_like_the_api_is_told(
    claude_lab: MakeLab, messages_server: MessagesServer, body: bytes, kind: str, stream: bool
) -> None:
    messages_server.play(Play(body=body, headers={"content-type": kind}))
    for call in (claude.message, claude.conversation):
        row = claude_lab(asking(messages_server, call, stream=stream)).failed()
        assert (row["failure_class"], row["retries"]) == ("incomplete", 0)
        assert "does not answer like the Messages API" in row["error"]
        assert "usage" not in row


def test_why_the_model_refused_reaches_the_grader(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "no"}
    messages_server.play(answer([], stop_reason="refusal", stop_details=details))
    graded: list[Any] = []

    def grade_case(case: Any, run: Any, ref: Any, ctx: Any) -> bool:
        graded.append(run.stop_details)
        return False

    row = claude_lab(asking(messages_server), grade_case).scored()
    assert (row["status"], row["passed"]) == ("ok", False)
    assert graded == [details]


def test_messages_without_a_stop_event_but_with_a_reason_are_whole(
    claude_lab: MakeLab, messages_server: MessagesServer
) -> None:
    messages_server.play(Play(message("Paris"), keep=5))
    row = claude_lab(asking(messages_server)).scored()
    assert (row["stop_reason"], row["usage"]) == ("end_turn", USAGE)


@pytest.mark.parametrize("content", [None, "Paris"])
def test_a_message_without_blocks_is_none(
    claude_lab: MakeLab, messages_server: MessagesServer, content: str | None
) -> None:
    messages_server.play(Play(body={**message("Paris"), "content": content}))
    row = claude_lab(asking(messages_server, stream=False)).failed()
    assert (row["failure_class"], row["usage"]) == ("incomplete", USAGE)
