"""Errors of the API as the real SDK raises them: class, number of tries, what was billed, effect on the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from time import monotonic, time
from typing import Any

import pytest
from claude_lab import ClaudeLab, async_client, sync_client
from engine_lab import row_of
from messages_server import MODEL, USAGE, MessagesServer, Play, Request, answer, error, message, refused_url

from pytest_hillclimb import claude
from pytest_hillclimb.engine.outcome import Kind
from pytest_hillclimb.engine.retry import MAX_TRIES

MakeLab = Callable[..., ClaudeLab]
ASKED: dict[str, Any] = {"max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
HTML = {"content-type": "text/html"}
TOO_LONG = "prompt is too long: 209063 tokens > 200000 maximum"
TOO_LONG_IN_ALL = "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"


def asking(server: MessagesServer | str, **request: Any) -> Any:
    client = async_client(server)

    async def run_case(case: Any, ctx: Any) -> Any:
        return await claude.message(ctx, client, **{"messages": case.prompt, **request})

    return run_case


PASSING = [
    (error(429, "rate_limit_error"), "rate_limited"),
    (error(429, "rate_limit_error", headers={"retry-after": "0"}), "rate_limited"),
    (error(429, "rate_limit_error", headers={"retry-after-ms": "1"}), "rate_limited"),
    (error(529, "overloaded_error", "Overloaded"), "overloaded"),
    (error(500, "api_error", "Internal server error"), "server_error"),
    (error(503, "api_error"), "server_error"),
    (error(504, "timeout_error", "Request timed out"), "server_error"),
    (Play(status=502, body=b"<html>Bad gateway</html>", headers=HTML), "server_error"),
    (Play(status=503, body=b""), "server_error"),
    (error(408, "timeout_error"), "connection"),
    (error(409, "conflict_error"), "server_error"),
    (error(400, "invalid_request_error", headers={"x-should-retry": "true"}), "bad_request"),
    (Play(message(), keep=0, then="close"), "connection"),
    (Play(message(), keep=0, then="reset"), "connection"),
]
LASTING = [
    (error(400, "invalid_request_error", "max_tokens: must be positive"), "bad_request", False),
    (
        error(400, "invalid_request_error", "prompt is too long: 209063 tokens > 200000 maximum"),
        "context_length",
        False,
    ),
    (
        error(
            400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"
        ),
        "context_length",
        False,
    ),
    (error(413, "request_too_large", "Request exceeds the maximum size"), "request_too_large", False),
    (error(401, "authentication_error", "invalid x-api-key"), "authentication", True),
    (error(402, "billing_error", "payment required"), "billing", True),
    (error(403, "permission_error", "key has no access to this resource"), "permission", True),
    (error(404, "not_found_error", "model: claude-nonesuch-9"), "unknown_model", True),
    (error(400, "invalid_request_error", "Your credit balance is too low to access the API."), "billing", True),
    (error(404, "not_found_error", "no such route"), "bad_request", False),
    (error(422, "invalid_request_error"), "bad_request", False),
    (error(500, "api_error", headers={"x-should-retry": "false"}), "server_error", False),
    (error(429, "rate_limit_error", headers={"x-should-retry": "false"}), "rate_limited", False),
    (error(529, "overloaded_error", headers={"x-should-retry": "false"}), "overloaded", False),
]


def said(value: Any) -> str | None:
    """Return a readable name for a parameter."""
    if not isinstance(value, Play):
        return None
    kind = value.body["error"]["type"] if isinstance(value.body, dict) else value.then
    return f"{value.status}-{kind}"


@pytest.mark.parametrize(("play", "failure_class"), PASSING, ids=said)
def test_what_may_pass_is_tried_five_times(
    claude_lab: MakeLab, messages_server: MessagesServer, quick_retries: None, play: Play, failure_class: str
) -> None:
    messages_server.play(play)
    outcome = claude_lab(asking(messages_server)).outcome()
    row = row_of(outcome)
    assert (row["failure_class"], row["retries"], outcome.stops_run) == (failure_class, MAX_TRIES - 1, False)
    assert "usage" not in row
    assert len(messages_server.requests) == MAX_TRIES
    assert {request.headers["x-stainless-retry-count"] for request in messages_server.requests} == {"0"}


@pytest.mark.parametrize(("play", "failure_class", "stops_run"), LASTING, ids=said)
def test_what_lasts_is_tried_once(
    claude_lab: MakeLab, messages_server: MessagesServer, play: Play, failure_class: str, stops_run: bool
) -> None:
    messages_server.play(play)
    outcome = claude_lab(asking(messages_server)).outcome()
    row = row_of(outcome)
    assert (row["failure_class"], row["retries"], outcome.stops_run) == (failure_class, 0, stops_run)
    assert len(messages_server.requests) == 1


def test_a_refused_connection_may_pass(claude_lab: MakeLab, quick_retries: None) -> None:
    outcome = claude_lab(asking(refused_url())).outcome()
    row = row_of(outcome)
    assert (row["failure_class"], row["retries"], outcome.stops_run) == ("connection", MAX_TRIES - 1, False)


def test_what_has_passed_gives_a_row(claude_lab: MakeLab, messages_server: MessagesServer, quick_retries: None) -> None:
    messages_server.play(error(529, "overloaded_error"), Play(message(), keep=0, then="close"), answer())
    row = claude_lab(asking(messages_server)).scored()
    assert (row["meta"], row["usage"]) == ({"retries": 2, "tries_of_unknown_cost": 1}, USAGE)


def test_the_server_says_how_long_to_wait(
    claude_lab: MakeLab, messages_server: MessagesServer, quick_retries: None
) -> None:
    """Seconds, milliseconds and a date; a date tells whole seconds, so its wait may be up to one second shorter."""
    asked = {"seconds": ("retry-after", "1"), "ms": ("retry-after-ms", "300"), "date": ("retry-after", "")}
    arrived: dict[str, list[float]] = {name: [] for name in asked}

    def script(request: Request) -> Play:
        name = request.prompt.removeprefix("prompt of ")
        arrived[name].append(request.at)
        header, value = asked[name]
        wait = {header: value or formatdate(time() + 2, usegmt=True)}
        return answer() if len(arrived[name]) > 1 else error(429, "rate_limit_error", headers=wait)

    messages_server.script = script
    lab = claude_lab(asking(messages_server), concurrency=3).lab
    outcomes = lab.outcomes(*asked)
    assert {outcome.kind for outcome in outcomes.values()} == {Kind.SCORED}
    waits = {name: second - first for name, (first, second) in arrived.items()}
    assert 1.0 <= waits["seconds"] < 6
    assert 0.3 <= waits["ms"] < 5
    assert 0.9 <= waits["date"] < 7


@pytest.mark.parametrize("wait", ["90", "600000", "a date"])
def test_a_wait_past_the_deadline_is_not_begun(claude_lab: MakeLab, messages_server: MessagesServer, wait: str) -> None:
    header = formatdate(time() + 3600, usegmt=True) if wait == "a date" else wait
    messages_server.play(error(429, "rate_limit_error", headers={"retry-after": header}))
    began = monotonic()
    row = claude_lab(asking(messages_server), timeout=60).failed()
    assert (row["failure_class"], row["retries"], len(messages_server.requests)) == ("rate_limited", 0, 1)
    assert monotonic() - began < 10


@pytest.mark.parametrize("header", ["soon", "-5", "", "Mon, 02 Nov 2009 11:59:00 GMT"])
def test_a_wait_that_cannot_be_read_or_is_over_is_the_trials_own(
    claude_lab: MakeLab, messages_server: MessagesServer, quick_retries: None, header: str
) -> None:
    messages_server.play(error(429, "rate_limit_error", headers={"retry-after": header}), answer())
    began = monotonic()
    claude_lab(asking(messages_server)).scored()
    assert monotonic() - began < 5


class AppError(Exception):
    """What an app makes of the SDK's exceptions."""


async def _chained(call: Any) -> Any:
    try:
        return await call
    except Exception as error:
        raise AppError("the answer could not be had") from error


async def _in_context(call: Any) -> Any:
    try:
        return await call
    except Exception:
        raise AppError("the answer could not be had")  # noqa: B904


async def _twice(call: Any) -> Any:
    try:
        return await _chained(call)
    except AppError:
        raise RuntimeError("step 3 failed")  # noqa: B904


async def _grouped(call: Any) -> Any:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_awaited(call))
    return task.result()


async def _awaited(call: Any) -> Any:
    return await call


async def _grouped_and_chained(call: Any) -> Any:
    return await _chained(_grouped(call))


@pytest.mark.parametrize("wrap", [_chained, _in_context, _twice, _grouped, _grouped_and_chained])
@pytest.mark.parametrize(
    ("play", "failure_class", "tries", "stops_run"),
    [
        (error(429, "rate_limit_error", headers={"retry-after-ms": "1"}), "rate_limited", MAX_TRIES, False),
        (error(529, "overloaded_error"), "overloaded", MAX_TRIES, False),
        (error(500, "api_error", headers={"x-should-retry": "false"}), "server_error", 1, False),
        (error(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), "context_length", 1, False),
        (error(401, "authentication_error", "invalid x-api-key"), "authentication", 1, True),
        (error(400, "invalid_request_error", "Your credit balance is too low."), "billing", 1, True),
        (error(404, "not_found_error", "model: claude-nonesuch-9"), "unknown_model", 1, True),
        (Play(message("x" * 200), keep=5, then="error"), "overloaded", MAX_TRIES, False),
        (Play(message("x" * 200), keep=5, then="reset"), "connection", MAX_TRIES, False),
    ],
    ids=said,
)
def test_an_apps_own_exceptions_hide_nothing(
    claude_lab: MakeLab,
    messages_server: MessagesServer,
    quick_retries: None,
    wrap: Any,
    play: Play,
    failure_class: str,
    tries: int,
    stops_run: bool,
) -> None:
    messages_server.play(play)
    client = async_client(messages_server)

    async def run_case(case: Any, ctx: Any) -> Any:
        return await wrap(claude.message(ctx, client, messages="hi"))

    outcome = claude_lab(run_case).outcome()
    row = row_of(outcome)
    assert (row["failure_class"], row["retries"], outcome.stops_run) == (failure_class, tries - 1, stops_run)
    assert len(messages_server.requests) == tries
    begun = {"input_tokens": 12, "output_tokens": 1} if play.message else None
    assert (row.get("usage"), row.get("model")) == (begun, MODEL if begun else None)
    assert [u["input_tokens"] for u in row.get("retry_usage", [])] == ([12] * (tries - 1) if begun else [])


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(
    ("play", "failure_class", "tries"),
    [
        (error(529, "overloaded_error"), "overloaded", MAX_TRIES),
        (error(403, "permission_error"), "permission", 1),
        (Play(message(), keep=0, then="reset"), "connection", MAX_TRIES),
        (Play(message("x" * 200), keep=4, then="reset"), "connection", MAX_TRIES),
    ],
    ids=said,
)
def test_a_users_sync_client_fails_alike(
    claude_lab: MakeLab,
    messages_server: MessagesServer,
    quick_retries: None,
    play: Play,
    failure_class: str,
    tries: int,
    recorded: bool,
) -> None:
    messages_server.play(play)
    client = sync_client(messages_server, max_retries=0)
    client = claude.record(client) if recorded else client

    def run_case(case: Any, ctx: Any) -> Any:
        return {"output": client.messages.create(model=ctx.model, **ASKED).content}

    row = claude_lab(run_case).failed()
    assert (row["failure_class"], row["retries"], len(messages_server.requests)) == (failure_class, tries - 1, tries)


class OpaqueError(Exception):
    """Says nothing of what it wraps."""


@pytest.mark.parametrize("implicit", [False, True], ids=["cause", "context"])
def test_an_answer_that_is_none_keeps_class_and_spend_when_the_app_wraps_it(
    claude_lab: MakeLab, messages_server: MessagesServer, implicit: bool
) -> None:
    plain = asking(messages_server)

    async def app(case: Any, ctx: Any) -> Any:
        try:
            return await plain(case, ctx)
        except claude.AnswerError as error:
            if implicit:
                raise OpaqueError("no answer")  # noqa: B904
            raise OpaqueError("no answer") from error

    messages_server.play(answer("searching", stop_reason="pause_turn"))
    row = claude_lab(app).failed()
    assert row["failure_class"] == "incomplete"
    assert row["usage"]["output_tokens"] > 0
