"""Streams that break: with an error event, in the middle, or never."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from claude_lab import ClaudeLab, async_client, sync_client
from engine_lab import eventually, row_of
from messages_server import MODEL, USAGE, MessagesServer, Play, answer, events_of, message

from pytest_hillclimb import claude
from pytest_hillclimb.engine.retry import MAX_TRIES

MakeLab = Callable[..., ClaudeLab]
BEGUN = {"input_tokens": 12, "output_tokens": 1}
LONG = message("x" * 300)


def asking(server: MessagesServer, **request: Any) -> Any:
    client = async_client(server)

    async def run_case(case: Any, ctx: Any) -> Any:
        return await claude.message(ctx, client, messages="hi", **request)

    return run_case


def iterating(server: MessagesServer) -> Any:
    """Return an app that reads the stream of a recorded sync client by itself."""
    client = claude.record(sync_client(server))

    def run_case(case: Any, ctx: Any) -> Any:
        asked: Any = {"model": ctx.model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        with client.messages.stream(**asked) as stream:
            return {"output": "".join(stream.text_stream)}

    return run_case


apps = pytest.mark.parametrize("app", [asking, iterating])


@apps
def test_an_overloaded_server_in_the_middle_may_pass(
    claude_lab: MakeLab, messages_server: MessagesServer, quick_retries: None, app: Any
) -> None:
    after_first_delta, before_content = Play(LONG, keep=3, then="error"), Play(LONG, keep=1, then="error")
    messages_server.play(after_first_delta, before_content, answer("Par"))
    outcome = claude_lab(app(messages_server)).outcome()
    row = row_of(outcome)
    assert (outcome.output, row["status"], row["usage"]) == ("Par", "ok", USAGE)
    assert row["meta"]["retries"] == 2
    assert row["meta"]["retry_usage"] == [{**BEGUN, "model": MODEL}] * 2
    assert len(messages_server.requests) == 3


@apps
@pytest.mark.parametrize(
    ("error_type", "failure_class", "tries", "stops_run"),
    [
        ("overloaded_error", "overloaded", MAX_TRIES, False),
        ("api_error", "server_error", MAX_TRIES, False),
        ("rate_limit_error", "rate_limited", MAX_TRIES, False),
        ("timeout_error", "server_error", MAX_TRIES, False),
        ("invalid_request_error", "bad_request", 1, False),
        ("request_too_large", "request_too_large", 1, False),
        ("not_found_error", "error", 1, False),
        ("authentication_error", "authentication", 1, True),
        ("billing_error", "billing", 1, True),
        ("some_future_error", "error", 1, False),
    ],
)
def test_an_error_event_means_what_its_type_says(
    claude_lab: MakeLab,
    messages_server: MessagesServer,
    quick_retries: None,
    app: Any,
    error_type: str,
    failure_class: str,
    tries: int,
    stops_run: bool,
) -> None:
    messages_server.play(Play(LONG, keep=4, then="error", error_type=error_type))
    outcome = claude_lab(app(messages_server)).outcome()
    row = row_of(outcome)
    assert (row["failure_class"], row["retries"], outcome.stops_run) == (failure_class, tries - 1, stops_run)
    assert (row["model"], row["usage"]) == (MODEL, BEGUN)
    assert row.get("retry_usage", []) == [{**BEGUN, "model": MODEL}] * (tries - 1)
    assert "200" not in row["error"]
    assert len(messages_server.requests) == tries


@apps
@pytest.mark.parametrize("then", ["reset", "close"])
def test_a_connection_that_breaks_in_the_middle_may_pass(
    claude_lab: MakeLab, messages_server: MessagesServer, quick_retries: None, app: Any, then: str
) -> None:
    messages_server.play(Play(LONG, keep=5, then=then))
    row = claude_lab(app(messages_server)).failed()
    assert (row["failure_class"], row["retries"]) == ("connection", MAX_TRIES - 1)
    assert (row["model"], row["usage"], len(row["retry_usage"])) == (MODEL, BEGUN, MAX_TRIES - 1)
    assert len(messages_server.requests) == MAX_TRIES


@apps
@pytest.mark.parametrize(
    "play", [Play(LONG, keep=4, then="pings"), Play(LONG, keep=4, then="hang"), Play(LONG, pace=0.1)]
)
def test_what_does_not_end_in_time_is_a_timeout(
    claude_lab: MakeLab, messages_server: MessagesServer, app: Any, play: Play
) -> None:
    messages_server.play(play)
    outcome = claude_lab(app(messages_server), timeout=0.6).outcome()
    row = row_of(outcome)
    assert (row["failure_class"], row["retries"], outcome.stops_run) == ("timeout", 0, False)
    assert (row["model"], row["usage"]) == (MODEL, BEGUN)
    assert len(messages_server.requests) == 1
    if app is asking:
        eventually(messages_server.requests[0].gone.is_set)


def test_pings_from_the_start_are_a_timeout_too(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(Play(LONG, keep=0, then="pings"))
    row = claude_lab(asking(messages_server), timeout=0.3).failed()
    assert (row["failure_class"], len(messages_server.requests)) == ("timeout", 1)
    assert "usage" not in row


def test_an_event_that_cannot_be_read_fails_once(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    name, data = events_of(LONG)[0]
    messages_server.play(Play(events=f"event: {name}\ndata: {json.dumps(data)}\n\nevent: message_delta\ndata: {{oops"))
    row = claude_lab(asking(messages_server)).failed()
    assert (row["failure_class"], row["usage"], len(messages_server.requests)) == ("incomplete", BEGUN, 1)


def test_the_exceptions_of_the_sdk_pass_through_with_what_was_billed(
    claude_lab: MakeLab, messages_server: MessagesServer
) -> None:
    caught: list[Any] = []
    messages_server.play(Play(LONG, keep=4, then="error"))

    async def run_case(case: Any, ctx: Any) -> Any:
        try:
            await claude.message(ctx, async_client(messages_server), messages="hi")
        except Exception as error:
            caught.append(error)
        return {"output": "caught"}

    claude_lab(run_case).scored()
    (raised,) = caught
    assert (type(raised).__module__.partition(".")[0], type(raised).__name__) == ("anthropic", "APIStatusError")
    assert (raised.status_code, raised.model, raised.usage) == (200, MODEL, BEGUN)
