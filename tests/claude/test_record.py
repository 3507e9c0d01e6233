"""``claude.record``: what a user's own client asks and is answered is the attempt's, whatever way it is called."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import anthropic
import pytest
from claude_lab import ClaudeLab, async_client, sync_client, turns
from engine_lab import row_of
from messages_server import (
    MODEL,
    USAGE,
    MessagesServer,
    Play,
    Request,
    answer,
    error,
    event_bytes,
    events_of,
    message,
    tool_use,
)

from pytest_hillclimb import claude
from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.engine.recording import CURRENT_RECORDING

MakeLab = Callable[..., ClaudeLab]
ASKED: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 10,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "Where?"}],
}
TURNS = [("system", "Be brief."), ("user", "Where?"), ("assistant", "Paris")]


def create(client: Any) -> Any:
    return client.messages.create(**ASKED)


def create_streaming(client: Any) -> Any:
    return list(client.messages.create(**ASKED, stream=True))


def stream_text(client: Any) -> Any:
    with client.messages.stream(**ASKED) as stream:
        return list(stream.text_stream)


def stream_final(client: Any) -> Any:
    with client.messages.stream(**ASKED) as stream:
        return stream.get_final_message()


def beta_create(client: Any) -> Any:
    return client.beta.messages.create(**ASKED, betas=["some-beta"])


def beta_stream(client: Any) -> Any:
    with client.beta.messages.stream(**ASKED) as stream:
        return stream.get_final_message()


def copied(client: Any) -> Any:
    return client.with_options(timeout=9, max_retries=0).copy(default_headers={"x-a": "b"}).messages.create(**ASKED)


def raw(client: Any) -> Any:
    return client.messages.with_raw_response.create(**ASKED).parse()


def raw_streaming(client: Any) -> Any:
    with client.messages.with_streaming_response.create(**ASKED) as response:
        return response.parse()


def raw_lines(client: Any) -> Any:
    with client.messages.with_streaming_response.create(**ASKED, stream=True) as response:
        return list(response.iter_lines())


def posted(client: Any) -> Any:
    return client.post("/v1/messages", body=ASKED, cast_to=object)


async def create_async(client: Any) -> Any:
    return await client.messages.create(**ASKED)


async def stream_async(client: Any) -> Any:
    async with client.messages.stream(**ASKED) as stream:
        return await stream.get_final_text()


async def create_streaming_async(client: Any) -> Any:
    async with await client.messages.create(**ASKED, stream=True) as stream:
        return [event async for event in stream]


async def beta_stream_async(client: Any) -> Any:
    async with client.beta.messages.stream(**ASKED) as stream:
        return [text async for text in stream.text_stream]


async def raw_streaming_async(client: Any) -> Any:
    async with client.messages.with_streaming_response.create(**ASKED) as response:
        return await response.json()


SYNC = [create, create_streaming, stream_text, stream_final, beta_create, beta_stream, copied, raw, raw_streaming]
SYNC += [raw_lines, posted]
ASYNC = [create_async, stream_async, create_streaming_async, beta_stream_async, raw_streaming_async]


class Records:
    """Runs an app with a recorded client."""

    def __init__(self, claude_lab: MakeLab, server: MessagesServer) -> None:
        self.lab = claude_lab
        self.server = server

    def sync(self, app: Any, **options: Any) -> Outcome:
        client = claude.record(sync_client(self.server, **options))
        return self.lab(lambda case, ctx: {"output": app(client) and "done"}).outcome()

    def asynchronous(self, app: Any, **options: Any) -> Outcome:
        async def run_case(case: Any, ctx: Any) -> Any:
            return {"output": await app(claude.record(async_client(self.server, **options))) and "done"}

        return self.lab(run_case).outcome()


@pytest.fixture
def records(claude_lab: MakeLab, messages_server: MessagesServer) -> Records:
    messages_server.play(answer())
    return Records(claude_lab, messages_server)


def is_recorded(outcome: Outcome) -> None:
    row = row_of(outcome)
    assert outcome.kind is Kind.SCORED, row
    assert (row["model"], row["usage"], row["stop_reason"], row["status"]) == (MODEL, USAGE, "end_turn", "ok")
    assert (row["tool_calls"], row["web_searches"]) == (0, 0)
    assert turns(outcome.transcript) == TURNS


@pytest.mark.parametrize("app", SYNC)
def test_every_way_of_calling_a_sync_client_is_recorded(records: Records, app: Any) -> None:
    is_recorded(records.sync(app))


@pytest.mark.parametrize("app", ASYNC)
def test_every_way_of_calling_an_async_client_is_recorded(records: Records, app: Any) -> None:
    is_recorded(records.asynchronous(app))


@pytest.mark.parametrize("client", [anthropic.Anthropic(api_key="k"), anthropic.AsyncAnthropic(api_key="k")])
def test_it_is_the_users_client(client: Any) -> None:
    recorded = claude.record(client)
    assert type(recorded) is type(client)
    assert (recorded.api_key, recorded.max_retries, recorded.base_url) == ("k", client.max_retries, client.base_url)
    assert client.middleware == ()


@pytest.mark.parametrize("client", [None, object(), "key"])
def test_what_is_no_client_is_refused(client: Any) -> None:
    with pytest.raises(TypeError, match="expected a client of the anthropic SDK"):
        claude.record(client)


def test_outside_of_a_trial_nothing_is_recorded(messages_server: MessagesServer) -> None:
    messages_server.play(answer())
    assert CURRENT_RECORDING.get() is None
    assert create(claude.record(sync_client(messages_server))).content[0].text == "Paris"


def test_other_endpoints_pass_by(records: Records) -> None:
    def app(client: Any) -> str:
        with pytest.raises(anthropic.NotFoundError):
            client.messages.count_tokens(model="m", messages=ASKED["messages"])
        with pytest.raises(anthropic.NotFoundError):
            client.models.list()
        return "done"

    outcome = records.sync(app)
    assert "usage" not in row_of(outcome)
    assert outcome.transcript is None


def test_an_app_of_its_own_with_tools_is_one_conversation(records: Records) -> None:
    """Echoes the answer as the SDK's models, leaves thinking out, and changes its system prompt on the way."""
    thought = {"type": "thinking", "thinking": "I need it.", "signature": "s"}
    first = answer(
        [thought, {"type": "text", "text": "Let me see. "}, tool_use("look_up", {"place": "Paris"})],
        stop_reason="tool_use",
    )
    records.server.play(first, answer("Paris"))

    def app(client: Any) -> str:
        messages: list[Any] = [{"role": "user", "content": "Where?"}]
        got = client.messages.create(**{**ASKED, "messages": messages})
        messages.append({"role": "assistant", "content": [b for b in got.content if b.type != "thinking"]})
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "found"}]}
        messages.append({"role": "user", "content": [result, {"type": "text", "text": "Go on."}]})
        return str(client.messages.create(**{**ASKED, "system": "Be briefer.", "messages": messages}).content[0].text)

    outcome = records.sync(app)
    assert turns(outcome.transcript) == [
        ("system", "Be brief."),
        ("user", "Where?"),
        ("assistant", "Let me see. "),
        ("tool_call", '{\n  "place": "Paris"\n}'),
        ("system", "Be briefer."),
        ("tool_result", "found"),
        ("user", "Go on."),
        ("assistant", "Paris"),
    ]
    told = outcome.transcript or []
    assert told[2]["thinking"] == "I need it."
    assert told[5]["name"] == "look_up"
    row = row_of(outcome)
    assert (row["usage"], row["tool_calls"]) == ({"input_tokens": 24, "output_tokens": 8}, 1)


def test_the_sdks_tool_runner_is_recorded(records: Records) -> None:
    records.server.play(answer([tool_use("look_up", {"place": "x"})], stop_reason="tool_use"), answer("Paris"))

    @anthropic.beta_tool
    def look_up(place: str) -> str:
        """Look a place up."""
        return f"found {place}"

    def app(client: Any) -> Any:
        return client.beta.messages.tool_runner(**ASKED, tools=[look_up]).until_done()

    outcome = records.sync(app)
    assert turns(outcome.transcript)[2:] == [
        ("tool_call", '{\n  "place": "x"\n}'),
        ("tool_result", "found x"),
        ("assistant", "Paris"),
    ]
    assert (outcome.transcript or [])[3]["name"] == "look_up"


def test_tool_runners_at_once_do_not_mix(records: Records) -> None:
    def script(request: Request) -> Play:
        if thread := request.body["thread"].get("previous_message_id"):
            return answer(f"done {thread}", id=f"end {thread}")
        return answer([tool_use("wait", {})], stop_reason="tool_use", id=request.prompt)

    records.server.script = script
    both = asyncio.Event()
    waiting: list[int] = []

    @anthropic.beta_async_tool
    async def wait() -> str:
        """Wait."""
        waiting.append(1)
        if len(waiting) == 2:
            both.set()
        await both.wait()
        return "waited"

    async def app(client: Any) -> Any:
        asked = [{**ASKED, "messages": [{"role": "user", "content": text}]} for text in ("a", "b")]
        runners = [client.beta.messages.tool_runner(**each, tools=[wait]) for each in asked]
        return await asyncio.gather(*(each.until_done() for each in runners))

    told = records.asynchronous(app).transcript or []
    assert [content for role, content in turns(told) if role in ("user", "assistant")] == ["a", "done a", "b", "done b"]
    assert [turn["name"] for turn in told if turn["role"] == "tool_result"] == ["wait", "wait"]


def test_independent_calls_stand_one_after_the_other(records: Records) -> None:
    records.server.script = lambda request: answer(f"to {request.prompt}")

    async def app(client: Any) -> Any:
        asked = [{**ASKED, "messages": [{"role": "user", "content": text}]} for text in ("a", "b")]
        return await asyncio.gather(*(client.messages.create(**each) for each in asked))

    outcome = records.asynchronous(app)
    assert turns(outcome.transcript) == [
        *[("system", "Be brief."), ("user", "a"), ("assistant", "to a")],
        *[("system", "Be brief."), ("user", "b"), ("assistant", "to b")],
    ]


def test_a_retry_of_the_sdk_is_recorded_once_and_billed_twice(records: Records) -> None:
    """The SDK itself only retries what it was refused, an app may also ask again after a stream that broke."""
    records.server.play(error(529, "overloaded_error", headers={"retry-after-ms": "1"}), answer())
    is_recorded(records.sync(create, max_retries=1))
    records.server.play(Play(message("Paris, I th" + "x" * 99), keep=3, then="error"), answer())

    def app(client: Any) -> Any:
        try:
            return stream_text(client)
        except anthropic.APIStatusError:
            return stream_text(client)

    outcome = records.sync(app)
    assert turns(outcome.transcript) == TURNS
    assert row_of(outcome)["usage"] == {"input_tokens": 24, "output_tokens": 5}


def test_an_answer_that_the_app_reads_in_part_is_recorded_in_part(records: Records) -> None:
    records.server.play(Play(message("Paris " * 50), pace=0.02))

    def app(client: Any) -> Any:
        with client.messages.stream(**ASKED) as stream:
            return next(iter(stream.text_stream))

    outcome = records.sync(app)
    row = row_of(outcome)
    assert (row["usage"], row.get("stop_reason")) == ({"input_tokens": 12, "output_tokens": 1}, None)
    assert turns(outcome.transcript)[2][1].startswith("Paris ")


def test_a_compressed_stream_is_recorded(records: Records) -> None:
    body = gzip.compress(b"".join(event_bytes(name, data) for name, data in events_of(message())))
    headers = {"content-encoding": "gzip", "content-type": "text/event-stream"}
    records.server.play(Play(body=body, headers=headers))
    is_recorded(records.sync(stream_final))


def test_images_are_kept_beside_the_transcript(records: Records) -> None:
    data = base64.b64encode(b"\x89PNG" + bytes(999)).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    outcome = records.sync(lambda c: c.messages.create(**{**ASKED, "messages": [{"role": "user", "content": [image]}]}))
    assert list(outcome.attachments.values()) == [b"\x89PNG" + bytes(999)]
    assert data[:50] not in json.dumps(outcome.transcript)


def test_what_the_app_says_itself_stands(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(answer(stop_reason="max_tokens"))
    client = claude.record(sync_client(messages_server))

    def run_case(case: Any, ctx: Any) -> Any:
        create(client)
        return {
            "output": "x",
            "usage": None,
            "stop_reason": "end_turn",
            "transcript": [{"role": "user", "content": ""}],
        }

    outcome = claude_lab(run_case).outcome()
    row = row_of(outcome)
    assert (row["usage"], row["stop_reason"], row["status"], row["model"]) == (None, "end_turn", "ok", MODEL)
    assert turns(outcome.transcript) == [("user", "")]


def test_how_the_last_answer_ended_is_how_the_run_ended(records: Records) -> None:
    records.server.play(answer(stop_reason="max_tokens"))
    assert row_of(records.sync(create))["status"] == "truncated"
    records.server.play(answer([tool_use("result", {"value": 1})], stop_reason="tool_use"))
    forced = {**ASKED, "tool_choice": {"type": "tool", "name": "result"}}
    row = row_of(records.sync(lambda client: client.messages.create(**forced)))
    assert (row["status"], row["stop_reason"], row["tool_calls"]) == ("ok", "tool_use", 1)


def test_a_substitution_fails_the_attempt(records: Records) -> None:
    records.server.play(answer(), answer(model="claude-haiku-4-5-20260101"))

    def app(client: Any) -> Any:
        return [create(client), create(client)]

    row = row_of(records.sync(app))
    assert row["failure_class"] == "serving_substitution"
    assert row["usage"]["input_tokens"] == 24


def test_an_app_may_use_several_models(records: Records) -> None:
    records.server.script = lambda request: answer(model=f"{request.body['model']}-20251001")

    def app(client: Any) -> Any:
        return [
            client.messages.create(**{**ASKED, "model": name}) for name in ("claude-haiku-4-5", "claude-sonnet-4-9")
        ]

    row = row_of(records.sync(app))
    assert row["model"] == "claude-haiku-4-5-20251001"
    assert row["usage"] == {
        "input_tokens": 24,
        "output_tokens": 8,
        "by_model": {"claude-haiku-4-5-20251001": USAGE, "claude-sonnet-4-9-20251001": USAGE},
    }


@pytest.mark.parametrize("inherits", [True, False])
def test_threads_that_inherit_the_context_are_recorded(records: Records, inherits: bool) -> None:
    def app(client: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            call = (copy_context().run, create, client) if inherits else (create, client)
            return pool.submit(*call).result()

    outcome = records.sync(app)
    assert ("usage" in row_of(outcome)) is inherits

    async def in_thread(client: Any) -> Any:
        return await asyncio.to_thread(create, client)

    client = claude.record(sync_client(records.server))

    async def run_case(case: Any, ctx: Any) -> Any:
        return {"output": bool(await in_thread(client))}

    is_recorded(records.lab(run_case).outcome())


def test_trials_at_once_do_not_mix(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    gate = threading.Barrier(4, timeout=10)

    def script(request: Request) -> Play:
        return answer(f"to {request.prompt}", usage={"input_tokens": len(request.prompt), "output_tokens": 1})

    messages_server.script = script
    client = claude.record(sync_client(messages_server))

    def run_case(case: Any, ctx: Any) -> Any:
        gate.wait()
        got = client.messages.create(**{**ASKED, "messages": [{"role": "user", "content": case.id}]})
        gate.wait()
        return {"output": got.content[0].text}

    names = ["a", "bb", "ccc", "dddd"]
    outcomes = claude_lab(run_case, concurrency=4).lab.outcomes(*names)
    assert [row_of(outcomes[name])["usage"]["input_tokens"] for name in names] == [1, 2, 3, 4]
    assert [turns(outcomes[name].transcript)[-1] for name in names] == [("assistant", f"to {name}") for name in names]


def test_in_the_grading_stage_the_calls_are_the_judges(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.script = lambda request: answer(model=f"{request.body['model']}-20250101")
    client = claude.record(sync_client(messages_server))

    def run_case(case: Any, ctx: Any) -> Any:
        create(client)
        return {"output": "x"}

    def grade_case(case: Any, run: Any, ref: Any, ctx: Any) -> Any:
        client.messages.create(**{**ASKED, "model": "claude-judge"})
        return 1

    row = claude_lab(run_case, grade_case).scored()
    assert (row["model"], row["usage"]) == ("claude-haiku-4-5-20250101", USAGE)
    assert (row["judge_model"], row["judge_usage"]) == ("claude-judge-20250101", USAGE)


@pytest.mark.parametrize("stage", ["app", "judge"])
def test_an_attempt_that_fails_after_its_calls_is_billed(
    claude_lab: MakeLab, messages_server: MessagesServer, stage: str
) -> None:
    messages_server.play(answer())
    client = claude.record(sync_client(messages_server))

    def fails(*_: Any) -> Any:
        create(client)
        raise KeyError("a bug of the app")

    apps = (fails,) if stage == "app" else (lambda case, ctx: {"output": "x"}, fails)
    row = claude_lab(*apps).failed()
    prefix = "" if stage == "app" else "judge_"
    assert (row[f"{prefix}model"], row[f"{prefix}usage"]) == (MODEL, USAGE)
    assert row["failure_class"] == ("error" if stage == "app" else "grader_error")


def test_a_client_that_records_may_be_given_to_message(records: Records) -> None:
    async def run_case(case: Any, ctx: Any) -> Any:
        client = claude.record(async_client(records.server))
        return await claude.message(ctx, client, messages="Where?", system="Be brief.")

    is_recorded(records.lab(run_case).outcome())


def test_recording_twice_is_recording_once(records: Records) -> None:
    def app(client: Any) -> Any:
        return create(claude.record(client))

    is_recorded(records.sync(app))
