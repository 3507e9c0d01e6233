"""``claude.message``: one call of the real SDK over real HTTP gives a complete run."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from claude_lab import ClaudeLab, async_client, turns
from engine_lab import eventually, row_of
from messages_server import MODEL, MessagesServer, Play, answer, events_of, message, sse

from pytest_hillclimb import claude
from pytest_hillclimb.engine.outcome import Kind
from pytest_hillclimb.model.run import Run

MakeLab = Callable[..., ClaudeLab]
USAGE = {
    "input_tokens": 9,
    "output_tokens": 31,
    "cache_read_input_tokens": 5,
    "cache_creation_input_tokens": 3,
    "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2},
    "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0},
    "service_tier": "priority",
    "of_a_later_version": {"depth": 1},
}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8


def asking(server: MessagesServer, **request: Any) -> Any:
    """Return a ``run_case`` that asks once."""

    client = async_client(server)

    async def run_case(case: Any, ctx: Any) -> Run:
        return await claude.message(ctx, client, **{"messages": case.prompt, **request})

    return run_case


@pytest.mark.parametrize("stream", [True, False])
def test_a_call_gives_a_complete_row(claude_lab: MakeLab, messages_server: MessagesServer, stream: bool) -> None:
    thinking = {"type": "thinking", "thinking": "Which capital?", "signature": "s"}
    text = [{"type": "text", "text": "The capital"}, {"type": "text", "text": " is Paris."}]
    messages_server.play(answer([thinking, *text], usage=USAGE))
    outcome = claude_lab(asking(messages_server, stream=stream, system="Be brief.")).outcome()
    row = row_of(outcome)
    assert outcome.kind is Kind.SCORED
    assert row["model"] == MODEL
    assert row["usage"] == USAGE
    assert (row["stop_reason"], row["status"], row["tool_calls"], row["web_searches"]) == ("end_turn", "ok", 0, 2)
    assert outcome.output == "The capital is Paris."
    assert [dict(turn) for turn in outcome.transcript or ()] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "prompt of only"},
        {"role": "assistant", "content": "The capital is Paris.", "thinking": "Which capital?"},
    ]
    (request,) = messages_server.requests
    assert request.body["model"] == "claude-haiku-4-5"
    assert request.streams is stream
    assert request.body["max_tokens"] > 0


def test_what_is_asked_for_is_sent_as_it_is(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(answer())
    schema = {"type": "json_schema", "schema": {"type": "object", "properties": {}, "additionalProperties": False}}
    request = {
        "model": "claude-opus-4-1",
        "max_tokens": 64_000,
        "system": [{"type": "text", "text": "rules", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "output_config": {"format": schema},
        "extra_headers": {"x-mine": "1"},
    }
    claude_lab(asking(messages_server, **request), model=None).scored()
    (sent,) = messages_server.requests
    assert {key: sent.body[key] for key in request if key != "extra_headers"} == {
        key: value for key, value in request.items() if key != "extra_headers"
    }
    assert sent.headers["x-mine"] == "1"


def test_betas_use_the_beta_api(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(answer("from beta"))
    outcome = claude_lab(asking(messages_server, betas=["some-beta-2026-01-01"])).outcome()
    assert outcome.output == "from beta"
    assert messages_server.requests[0].headers["anthropic-beta"] == "some-beta-2026-01-01"


def test_the_default_client_is_configured_by_the_environment(
    claude_lab: MakeLab, messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    messages_server.play(answer())

    async def run_case(case: Any, ctx: Any) -> Run:
        first = await claude.message(ctx, messages="a")
        assert first.output == "Paris"
        return await claude.message(ctx, messages="b")

    assert claude_lab(run_case).scored()["model"] == MODEL


def test_without_a_key_the_run_ends_before_it_has_begun(claude_lab: MakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")

    async def run_case(case: Any, ctx: Any) -> Run:
        return await claude.message(ctx, messages="hi")

    outcome = claude_lab(run_case).outcome()
    assert (row_of(outcome)["failure_class"], outcome.stops_run) == ("authentication", True)


def test_images_and_documents_are_attachments(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    def source(media_type: str, data: bytes) -> dict[str, str]:
        return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}

    content = [
        {"type": "image", "source": source("image/png", PNG)},
        {"type": "document", "title": "terms", "source": source("application/pdf", b"%PDF-1")},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain words"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_7"}},
        {"type": "text", "text": "What is this?"},
    ]
    messages_server.play(answer())
    outcome = claude_lab(asking(messages_server, messages=[{"role": "user", "content": content}])).outcome()
    user, _ = outcome.transcript or ()
    assert user["content"] == "[image file_7]What is this?"
    assert [(a["kind"], a.get("alt")) for a in user["attachments"]] == [
        ("image", None),
        ("pdf", "terms"),
        ("text", None),
        ("url", None),
    ]
    kept = outcome.attachments
    assert sorted(kept.values()) == sorted([PNG, b"%PDF-1", b"plain words"])
    refs = [a["ref"] for a in user["attachments"]]
    assert [ref.rpartition("/")[2] in kept for ref in refs] == [True, True, True, False]
    assert base64.b64encode(PNG).decode()[:40] not in json.dumps(outcome.transcript)


def test_a_file_that_is_too_large_to_keep_is_named(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    data = base64.b64encode(bytes(17 * 1024 * 1024)).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    messages_server.play(answer())
    outcome = claude_lab(asking(messages_server, messages=[{"role": "user", "content": [image]}])).outcome()
    assert turns(outcome.transcript)[0] == ("user", "[image: image/png, 17825792 bytes]")
    assert outcome.attachments == {}


def test_what_the_api_did_by_itself_is_told_readably(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    found = {"type": "web_search_result", "url": "https://a", "title": "A", "encrypted_content": "Zm9v" * 50}
    content = [
        {"type": "text", "text": "I look."},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "capital"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [found]},
        {"type": "redacted_thinking", "data": "Zm9v" * 50},
        {"type": "text", "text": "Paris"},
        {"type": "some_future_block", "detail": 1},
    ]
    messages_server.play(answer(content))
    outcome = claude_lab(asking(messages_server)).outcome()
    row = row_of(outcome)
    assert (row["tool_calls"], row["web_searches"]) == (1, 1)
    told = outcome.transcript or ()
    assert [(turn["role"], turn.get("name")) for turn in told] == [
        ("user", None),
        ("assistant", None),
        ("tool_call", "web_search"),
        ("tool_result", "web_search"),
        ("assistant", None),
    ]
    assert told[2]["content"] == '{\n  "query": "capital"\n}'
    assert json.loads(told[3]["content"]) == [{"type": "web_search_result", "url": "https://a", "title": "A"}]
    assert told[4]["thinking"] == "[redacted by the API]"
    assert "Zm9v" not in json.dumps(told)
    assert outcome.output == "I look.Paris"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": None, "output_tokens": 4}, {"output_tokens": "many"}])
def test_odd_usage_is_kept_as_it_is(
    claude_lab: MakeLab, messages_server: MessagesServer, usage: Any, stream: bool
) -> None:
    whole = message(usage=usage)
    if stream:
        events = [(n, {**d, "usage": usage} if n == "message_delta" else d) for n, d in events_of(message(usage={}))]
        events[0] = ("message_start", {"type": "message_start", "message": {**whole, "content": []}})
        text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
        messages_server.play(sse(text))
    else:
        messages_server.play(Play(whole))
    row = claude_lab(asking(messages_server, stream=stream)).scored()
    assert row.get("usage") == usage


def test_the_usage_at_the_end_counts_and_null_says_nothing(
    claude_lab: MakeLab, messages_server: MessagesServer
) -> None:
    start = {**message(), "content": [], "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1}}
    delta = {"output_tokens": 40, "cache_read_input_tokens": None, "input_tokens": 6}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": delta},
        {"type": "message_stop"},
    ]
    messages_server.play(sse("".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)))
    row = claude_lab(asking(messages_server)).scored()
    assert row["usage"] == {"input_tokens": 6, "cache_read_input_tokens": 7, "output_tokens": 40}


def test_a_body_may_be_compressed(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    body = gzip.compress(json.dumps(message("zipped", usage=USAGE)).encode())
    messages_server.play(Play(body=body, headers={"content-encoding": "gzip"}))
    outcome = claude_lab(asking(messages_server, stream=False)).outcome()
    assert (outcome.output, row_of(outcome)["usage"]) == ("zipped", USAGE)


def test_several_calls_of_one_attempt_count_together(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.script = lambda request: answer(f"to {request.prompt}")

    async def run_case(case: Any, ctx: Any) -> Run:
        client = async_client(messages_server)
        draft = await claude.message(ctx, client, messages="draft")
        assert draft.usage == {"input_tokens": 12, "output_tokens": 4}
        return await claude.message(ctx, client, messages="final")

    outcome = claude_lab(run_case).outcome()
    assert outcome.output == "to final"
    assert row_of(outcome)["usage"] == {"input_tokens": 24, "output_tokens": 8}
    assert turns(outcome.transcript) == [
        ("user", "draft"),
        ("assistant", "to draft"),
        ("user", "final"),
        ("assistant", "to final"),
    ]


def test_an_author_may_count_in_another_way(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(answer())

    async def run_case(case: Any, ctx: Any) -> Any:
        client = async_client(messages_server)
        for prompt in ("a", "b"):
            await claude.message(ctx, client, messages=prompt)
        return {"output": "x", "usage": {"input_tokens": 1, "output_tokens": 1}, "transcript": [], "tool_calls": 7}

    outcome = claude_lab(run_case).outcome()
    row = row_of(outcome)
    assert (row["usage"], row["tool_calls"], row["web_searches"]) == ({"input_tokens": 1, "output_tokens": 1}, 7, 0)
    assert outcome.transcript == []
    assert row["model"] == MODEL


def test_requests_do_not_outlast_the_trial(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(answer())
    claude_lab(asking(messages_server), timeout=5).scored()
    (request,) = messages_server.requests
    assert 4 < float(request.headers["x-stainless-read-timeout"]) <= 6
    assert request.headers["x-stainless-retry-count"] == "0"


def test_the_clients_own_timeout_holds_where_it_is_shorter(
    claude_lab: MakeLab, messages_server: MessagesServer
) -> None:
    messages_server.play(answer())
    claude_lab(asking(messages_server, timeout=1.5), timeout=0).scored()
    assert float(messages_server.requests[0].headers["x-stainless-read-timeout"]) == 1.5
    claude_lab(asking(messages_server), timeout=0).scored()
    assert float(messages_server.requests[1].headers["x-stainless-read-timeout"]) == 600


@pytest.mark.parametrize("play", [Play(message(), wait=20), Play(message(), keep=2, then="hang")])
def test_a_cancelled_call_closes_its_connection(
    claude_lab: MakeLab, messages_server: MessagesServer, play: Play
) -> None:
    messages_server.play(play)

    async def run_case(case: Any, ctx: Any) -> Any:
        task = asyncio.create_task(claude.message(ctx, async_client(messages_server), messages="hi"))
        while not messages_server.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return {"output": "cancelled"}

    claude_lab(run_case).scored()
    eventually(messages_server.requests[0].gone.is_set)


def test_a_trial_that_times_out_closes_the_connection(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(Play(message(), keep=2, then="pings"))
    assert claude_lab(asking(messages_server), timeout=0.3).failed()["failure_class"] == "timeout"
    eventually(messages_server.requests[0].gone.is_set)
    assert len(messages_server.requests) == 1


def test_no_call_is_made_after_the_deadline(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(answer())
    seen: list[BaseException] = []

    async def run_case(case: Any, ctx: Any) -> Any:
        ctx.deadline = lambda: 0.0
        try:
            return await claude.message(ctx, async_client(messages_server), messages="hi")
        except Exception as error:
            seen.append(error)
            raise

    assert claude_lab(run_case).failed()["failure_class"] == "timeout"
    assert [type(error).__name__ for error in seen] == ["TrialTimeout"]
    assert messages_server.requests == []


def test_a_model_must_be_named(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    row = claude_lab(asking(messages_server), model=None).failed()
    assert "--hillclimb-model" in row["error"]
    assert messages_server.requests == []


@pytest.mark.parametrize("client", [anthropic.Anthropic(api_key="none"), object(), "key"])
def test_a_client_that_cannot_be_awaited_is_refused(claude_lab: MakeLab, client: Any) -> None:
    async def run_case(case: Any, ctx: Any) -> Any:
        return await claude.message(ctx, client, messages="hi")

    row = claude_lab(run_case).failed()
    assert "AsyncAnthropic" in row["error"]


def test_the_clients_middleware_stays_in_place(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(answer())
    seen: list[str] = []

    async def note(request: Any, call_next: Any) -> Any:
        seen.append(request.json["model"])
        return await call_next(request)

    async def run_case(case: Any, ctx: Any) -> Any:
        return await claude.message(ctx, async_client(messages_server, middleware=[note]), messages="hi")

    claude_lab(run_case).scored()
    assert seen == ["claude-haiku-4-5"]


def test_the_served_model_is_held_against_the_requested_one(
    claude_lab: MakeLab, messages_server: MessagesServer
) -> None:
    messages_server.play(answer(model="claude-sonnet-4-5-20250929", usage=USAGE))
    row = claude_lab(asking(messages_server)).failed()
    assert (row["failure_class"], row["model"], row["usage"]) == (
        "serving_substitution",
        "claude-sonnet-4-5-20250929",
        USAGE,
    )


def test_a_judge_may_ask_too(claude_lab: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(answer("4"))

    async def grade_case(case: Any, run: Any, ref: Any, ctx: Any) -> Any:
        verdict = await claude.message(ctx, async_client(messages_server), model="claude-judge-1", messages=run.output)
        return float(verdict.output)

    row = claude_lab(lambda case, ctx: {"output": "x"}, grade_case).scored()
    assert (row["grade"], row.get("usage")) == ({"score": 4.0}, None)
    assert (row["judge_model"], row["judge_usage"]) == (MODEL, {"input_tokens": 12, "output_tokens": 4})
