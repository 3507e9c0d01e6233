"""``claude.record``: an app's last answer that is none is no measurement, whatever the app made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import pytest
from claude_lab import ClaudeLab, sync_client
from messages_server import MODEL, USAGE, MessagesServer, Play, Request, answer, message, tool_use

from pytest_hillclimb import claude

MakeLab = Callable[..., ClaudeLab]
ASKED: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 10,
    "messages": [{"role": "user", "content": "Where?"}],
}
TEXT = [{"type": "text", "text": "Par"}]
BEGUN = {**USAGE, "output_tokens": 1}
CUT_OFF = Play(message("Paris " * 30), keep=5)


def create(client: Any, **more: Any) -> Any:
    return client.messages.create(**{**ASKED, **more})


def stream_text(client: Any, **more: Any) -> Any:
    with client.messages.stream(**{**ASKED, **more}) as stream:
        return "".join(stream.text_stream)


def events(client: Any) -> Any:
    return list(client.messages.create(**ASKED, stream=True))


def events_until_the_last(client: Any) -> Any:
    read = []
    for event in client.messages.create(**ASKED, stream=True):
        read.append(event)
        if event.type == "message_delta" and event.delta.stop_reason:
            break
    return read


def raw_lines(client: Any) -> Any:
    with client.messages.with_streaming_response.create(**ASKED, stream=True) as response:
        return list(response.iter_lines())


def raw_bytes(client: Any) -> Any:
    with client.messages.with_streaming_response.create(**ASKED) as response:
        return response.read()


def running(claude_lab: MakeLab, server: MessagesServer, app: Any, **given: Any) -> ClaudeLab:
    client = claude.record(sync_client(server, max_retries=0))

    def run_case(case: Any, ctx: Any) -> Any:
        return {"output": str(app(client)), **given}

    return claude_lab(run_case)


@pytest.mark.parametrize("app", [create, stream_text, events, raw_lines, raw_bytes])
@pytest.mark.parametrize(
    ("reason", "content", "failure_class"),
    [
        ("pause_turn", TEXT, "incomplete"),
        ("tool_use", [*TEXT, tool_use("f", {})], "incomplete"),
        (None, TEXT, "incomplete"),
        ("some_future_reason", TEXT, "unknown_stop_reason"),
    ],
)
def test_how_it_ended_is_no_outcome(
    claude_lab: MakeLab, messages_server: MessagesServer, app: Any, reason: str | None, content: Any, failure_class: str
) -> None:
    messages_server.play(answer(content, stop_reason=reason))
    row = running(claude_lab, messages_server, app).failed()
    assert (row["failure_class"], row["model"], row["usage"]) == (failure_class, MODEL, USAGE)
    assert (row["error_type"], row["retries"], len(messages_server.requests)) == ("AnswerError", 0, 1)


@pytest.mark.parametrize("app", [stream_text, events, raw_lines])
def test_a_stream_that_ends_in_the_middle(claude_lab: MakeLab, messages_server: MessagesServer, app: Any) -> None:
    messages_server.play(CUT_OFF)
    row = running(claude_lab, messages_server, app).failed()
    assert (row["failure_class"], row["model"], row["usage"]) == ("incomplete", MODEL, BEGUN)
    assert "cut off" in row["error"]


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"[1]", b"", b"{}"])
@pytest.mark.parametrize("app", [raw_bytes, raw_lines, events])
def test_a_body_that_is_no_message(claude_lab: MakeLab, messages_server: MessagesServer, body: bytes, app: Any) -> None:
    messages_server.play(Play(body=body, headers={"content-type": "text/html"}))
    row = running(claude_lab, messages_server, app).failed()
    assert (row["failure_class"], "usage" in row) == ("incomplete", False)
    assert "does not answer like the Messages API" in row["error"]


def test_what_earlier_calls_were_billed_is_kept(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(answer(), Play(body=b"<html>", headers={"content-type": "text/html"}))
    row = running(claude_lab, messages_server, lambda client: [create(client), raw_bytes(client)]).failed()
    assert (row["failure_class"], row["usage"]) == ("incomplete", USAGE)
    messages_server.play(answer(), CUT_OFF)
    row = running(claude_lab, messages_server, lambda client: [create(client), stream_text(client)]).failed()
    assert row["usage"] == {"input_tokens": 24, "output_tokens": 5}
    own = {"input_tokens": 5, "output_tokens": 6}
    assert running(claude_lab, messages_server, stream_text, usage=own).failed()["usage"] == own


@pytest.mark.parametrize("first", [CUT_OFF, answer(TEXT, stop_reason="pause_turn"), answer(TEXT, stop_reason=None)])
def test_an_app_may_go_on_from_it(claude_lab: MakeLab, messages_server: MessagesServer, first: Play) -> None:
    messages_server.play(first, answer())
    row = running(claude_lab, messages_server, lambda client: [stream_text(client), create(client)]).scored()
    assert (row["status"], row["stop_reason"]) == ("ok", "end_turn")


def test_side_calls_of_other_models_do_not_matter(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    def script(request: Request) -> Play:
        is_side = request.body["model"] == "claude-side"
        return answer(TEXT, stop_reason="pause_turn", model="claude-side-1") if is_side else answer()

    messages_server.script = script
    both = [create, lambda client: create(client, model="claude-side")]
    row = running(claude_lab, messages_server, lambda client: [each(client) for each in both]).scored()
    assert row["model"] == MODEL


@pytest.mark.parametrize("given", [{"stop_reason": "tool_use"}, {"status": "ok"}, {"stop_reason": None}])
def test_the_author_may_say_how_the_run_ended(
    claude_lab: MakeLab, messages_server: MessagesServer, given: dict[str, Any]
) -> None:
    messages_server.play(answer([tool_use("hand_over", {})], stop_reason="tool_use"))
    assert running(claude_lab, messages_server, create, **given).scored()["status"] == "ok"


@pytest.mark.parametrize("then", ["end", "hang"])
def test_a_stream_may_be_left_early(claude_lab: MakeLab, messages_server: MessagesServer, then: str) -> None:
    messages_server.play(Play(message("Paris " * 50), keep=9, then=then, pace=0.02))

    def app(client: Any) -> Any:
        with client.messages.stream(**ASKED) as stream:
            return next(iter(stream.text_stream))

    assert running(claude_lab, messages_server, app).scored()["usage"] == BEGUN


@pytest.mark.parametrize("then", ["error", "reset", "close"])
def test_an_error_that_the_app_has_caught_is_its_own_affair(
    claude_lab: MakeLab, messages_server: MessagesServer, then: str
) -> None:
    messages_server.play(Play(message("Paris " * 30), keep=5, then=then))

    def app(client: Any) -> Any:
        try:
            return pytest.fail(stream_text(client))
        except (anthropic.APIError, httpx2.TransportError):
            return "I cannot answer now."

    assert running(claude_lab, messages_server, app).scored()["usage"] == BEGUN


@pytest.mark.parametrize(("reason", "failure_class"), [("tool_use", "incomplete"), ("novel", "unknown_stop_reason")])
def test_an_app_need_not_read_on_after_the_stop_reason(
    claude_lab: MakeLab, messages_server: MessagesServer, reason: str, failure_class: str
) -> None:
    messages_server.play(Play(message(TEXT, stop_reason=reason), pace=0.01))
    assert running(claude_lab, messages_server, events_until_the_last).failed()["failure_class"] == failure_class
    messages_server.play(Play(message(TEXT), pace=0.01))
    assert running(claude_lab, messages_server, events_until_the_last).scored()["stop_reason"] == "end_turn"
