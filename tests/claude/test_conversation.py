"""``claude.conversation``: the loop of calls and tools, as one run."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from claude_lab import ClaudeLab, async_client, turns
from engine_lab import row_of
from messages_server import MODEL, MessagesServer, Play, Request, answer, error, message, text_of, tool_use

from pytest_hillclimb import InfrastructureError, claude
from pytest_hillclimb.engine.outcome import Kind, Outcome

MakeLab = Callable[..., ClaudeLab]
SERVED_LATER = "claude-haiku-4-5-20260101"


def look_up(place: str, depth: int = 1) -> str:
    """Look a place up.

    Args:
        place: its name
        depth: how far to look
    """
    return f"{place} at depth {depth}"


async def look_up_async(place: str) -> dict[str, Any]:
    """Look a place up."""
    return {"place": place, "found": True}


def fails(place: str) -> str:
    """Look a place up."""
    raise LookupError(f"no {place}")


def calls_then_answer(*uses: dict[str, Any], text: str = "Paris", **last: Any) -> list[Play]:
    """Return plays: the model calls tools, then answers."""
    return [answer([{"type": "text", "text": "Let me see."}, *uses], stop_reason="tool_use"), answer(text, **last)]


def results(request: Request) -> list[dict[str, Any]]:
    """Return the tool results that a request brings."""
    return [block for block in request.body["messages"][-1]["content"] if block["type"] == "tool_result"]


class Talks:
    """Runs conversations with the server."""

    def __init__(self, claude_lab: MakeLab, server: MessagesServer) -> None:
        self._lab = claude_lab
        self.server = server

    def outcome(self, *plays: Play, **request: Any) -> Outcome:
        self.server.play(*plays)

        async def run_case(case: Any, ctx: Any) -> Any:
            return await claude.conversation(ctx, async_client(self.server), **{"messages": "Where?", **request})

        return self._lab(run_case).outcome()


@pytest.fixture
def talks(claude_lab: MakeLab, messages_server: MessagesServer) -> Talks:
    return Talks(claude_lab, messages_server)


def test_all_turns_are_one_run(talks: Talks) -> None:
    use = {"type": "thinking", "thinking": "I need it.", "signature": "s"}
    first = [use, tool_use("look_up", {"place": "Paris"}, "a"), tool_use("look_up", {"place": "Lyon", "depth": 2}, "b")]
    outcome = talks.outcome(
        answer(first, stop_reason="tool_use"), answer("It is Paris."), tools=[look_up], system="Be brief."
    )
    row = row_of(outcome)
    assert outcome.output == "It is Paris."
    assert (row["tool_calls"], row["stop_reason"], row["model"]) == (2, "end_turn", MODEL)
    assert row["usage"] == {"input_tokens": 24, "output_tokens": 8}
    assert turns(outcome.transcript) == [
        ("system", "Be brief."),
        ("user", "Where?"),
        ("tool_call", '{\n  "place": "Paris"\n}'),
        ("tool_call", '{\n  "place": "Lyon",\n  "depth": 2\n}'),
        ("tool_result", "Paris at depth 1"),
        ("tool_result", "Lyon at depth 2"),
        ("assistant", "It is Paris."),
    ]
    told = outcome.transcript or []
    assert told[2]["thinking"] == "I need it."
    assert [turn.get("name") for turn in told[2:6]] == ["look_up"] * 4
    second = talks.server.requests[1]
    assert second.body["messages"][1]["content"] == first
    assert results(second) == [
        {"type": "tool_result", "tool_use_id": "a", "content": "Paris at depth 1"},
        {"type": "tool_result", "tool_use_id": "b", "content": "Lyon at depth 2"},
    ]


SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


@pytest.mark.parametrize(
    ("tool", "content", "description"),
    [
        (look_up, "Paris at depth 1", "Look a place up."),
        (look_up_async, '{"place":"Paris","found":true}', "Look a place up."),
        (anthropic.beta_tool(look_up), "Paris at depth 1", "Look a place up."),
        (anthropic.beta_async_tool(look_up_async), '{"place":"Paris","found":true}', "Look a place up."),
        (({"name": "find", "description": "Find.", "input_schema": SCHEMA}, look_up), "Paris at depth 1", "Find."),
        ((SCHEMA, look_up_async), '{"place":"Paris","found":true}', "Look a place up."),
        ((SCHEMA, lambda place: None), "", None),
        ((SCHEMA, lambda place: [{"type": "text", "text": place}]), [{"type": "text", "text": "Paris"}], None),
        ((SCHEMA, lambda place: {"type": "text", "text": place}), [{"type": "text", "text": "Paris"}], None),
        ((SCHEMA, lambda place: {"type": "text", "size": 1}), '{"type":"text","size":1}', None),
        ((SCHEMA, lambda place: [{"type": "city", "name": place}]), '[{"type":"city","name":"Paris"}]', None),
        ((SCHEMA, lambda place: [{"type": ["a"]}, place]), '[{"type":["a"]},"Paris"]', None),
        ((SCHEMA, lambda place: [place]), '["Paris"]', None),
    ],
)
def test_tools_come_in_several_forms(talks: Talks, tool: Any, content: Any, description: str | None) -> None:
    talks.server.play(answer())
    name = claude_tool_name(tool)
    outcome = talks.outcome(*calls_then_answer(tool_use(name, {"place": "Paris"})), tools=[tool])
    assert outcome.kind is Kind.SCORED, outcome.row
    first, second = talks.server.requests
    (definition,) = first.body["tools"]
    assert (definition["name"], definition.get("description")) == (name, description)
    assert definition["input_schema"]["properties"]["place"]["type"] == "string"
    assert [result["content"] for result in results(second)] == [content]


def claude_tool_name(tool: Any) -> str:
    if isinstance(tool, tuple):
        return str(tool[0].get("name", tool[1].__name__))
    return str(getattr(tool, "name", None) or tool.__name__)


@pytest.mark.parametrize("tool", ["look_up", 7, (1, 2), ("schema", look_up)])
def test_what_is_no_tool_is_refused(talks: Talks, tool: Any) -> None:
    outcome = talks.outcome(answer(), tools=[tool])
    assert "a tool is a function" in row_of(outcome)["error"]
    assert talks.server.requests == []


def test_two_tools_of_one_name_are_refused(talks: Talks) -> None:
    outcome = talks.outcome(answer(), tools=[look_up, (SCHEMA, look_up)])
    assert "two tools are called 'look_up'" in row_of(outcome)["error"]


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (tool_use("fails", {"place": "Atlantis"}), "LookupError: no Atlantis"),
        (tool_use("look_up", {"nowhere": 1}), "ValueError: Invalid arguments for function look_up"),
        (tool_use("unknown", {}), "LookupError: there is no tool 'unknown'"),
        ({**tool_use("look_up", {}), "input": None}, "ValueError: the arguments are no JSON object"),
        (tool_use("web_search", {}), "LookupError: there is no tool 'web_search'"),
    ],
)
def test_errors_of_tools_are_told_to_the_model(talks: Talks, use: dict[str, Any], says: str) -> None:
    web_search = {"type": "web_search_20250305", "name": "web_search"}
    outcome = talks.outcome(*calls_then_answer(use), tools=[look_up, fails, web_search])
    assert outcome.kind is Kind.SCORED, outcome.row
    (result,) = results(talks.server.requests[1])
    assert (result["content"], result["is_error"]) == (says, True)
    told = [turn for turn in outcome.transcript or () if turn["role"] == "tool_result"]
    assert [(turn["content"], turn["is_error"]) for turn in told] == [(says, True)]
    assert talks.server.requests[0].body["tools"][2] == web_search


@pytest.mark.parametrize(
    ("raised", "failure_class"),
    [
        (InfrastructureError("sandbox_lost", False, "gone"), "infrastructure"),
        (claude.AnswerError("cut off", failure_class="incomplete", model=None, usage=None), "incomplete"),
    ],
)
def test_errors_of_the_surroundings_fail_the_attempt(talks: Talks, raised: Exception, failure_class: str) -> None:
    def look_up() -> str:
        raise raised

    row = row_of(talks.outcome(*calls_then_answer(tool_use("look_up", {})), tools=[look_up]))
    assert row["failure_class"] == failure_class
    assert row["usage"] == {"input_tokens": 12, "output_tokens": 4}


def test_a_tool_that_asks_the_model_itself_is_part_of_the_run(talks: Talks) -> None:
    def script(request: Request) -> Play:
        if text_of(request.body["messages"][0]["content"]).startswith("sub"):
            return answer("sub answer")
        return calls_then_answer(tool_use("ask", {}))[len(request.body["messages"]) > 1]

    async def run_case(case: Any, ctx: Any) -> Any:
        client = async_client(talks.server)

        async def ask() -> str:
            return str((await claude.message(ctx, client, messages="sub question")).output)

        return await claude.conversation(ctx, client, messages="Where?", tools=[ask])

    talks.server.script = script
    outcome = talks._lab(run_case).outcome()
    assert row_of(outcome)["usage"] == {"input_tokens": 36, "output_tokens": 12}
    assert ("tool_result", "sub answer") in turns(outcome.transcript)
    assert ("user", "sub question") in turns(outcome.transcript)


def test_sync_tools_do_not_hold_up_the_loop(talks: Talks) -> None:
    threads: list[str] = []

    def look_up() -> str:
        threads.append(threading.current_thread().name)
        return "x"

    async def look_up_too() -> str:
        threads.append(threading.current_thread().name)
        return "x"

    uses = [tool_use("look_up", {}, "a"), tool_use("look_up_too", {}, "b")]
    assert talks.outcome(*calls_then_answer(*uses), tools=[look_up, look_up_too]).kind is Kind.SCORED
    assert len(set(threads)) == 2


@pytest.mark.parametrize(
    ("wrap", "text"),
    [
        (lambda block: block, ""),
        (lambda block: [block], ""),
        (lambda block: (block,), ""),
        (lambda block: ["drawn", block], "drawn"),
        (lambda block: [{"type": "text", "text": "drawn"}, block], "drawn"),
    ],
)
@pytest.mark.parametrize(("kind", "sort", "media"), [("image", "image", "png"), ("document", "pdf", "pdf")])
def test_files_of_tools_are_kept_beside_the_transcript(
    talks: Talks, kind: str, sort: str, media: str, wrap: Any, text: str
) -> None:
    data = base64.b64encode(b"\x89PNG" + bytes(500)).decode()
    media_type = f"{'image' if kind == 'image' else 'application'}/{media}"
    source = {"type": "base64", "media_type": media_type, "data": data}

    def draw() -> Any:
        """Draw."""
        return wrap({"type": kind, "source": source})

    outcome = talks.outcome(*calls_then_answer(tool_use("draw", {})), tools=[draw])
    (told,) = [turn for turn in outcome.transcript or () if turn["role"] == "tool_result"]
    assert (told["name"], told["content"], [a["kind"] for a in told["attachments"]]) == ("draw", text, [sort])
    assert results(talks.server.requests[1])[0]["content"][-1] == {"type": kind, "source": source}
    assert list(outcome.attachments.values()) == [b"\x89PNG" + bytes(500)]


def test_a_paused_turn_goes_on(talks: Talks) -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "capital"}}
    paused = [{"type": "text", "text": "The capital "}, search, {"type": "text", "text": ""}]
    outcome = talks.outcome(answer(paused, stop_reason="pause_turn"), answer("is Paris."))
    assert outcome.output == "The capital is Paris."
    assert turns(outcome.transcript) == [
        ("user", "Where?"),
        ("assistant", "The capital "),
        ("tool_call", '{\n  "query": "capital"\n}'),
        ("assistant", "is Paris."),
    ]
    assert talks.server.requests[1].body["messages"] == [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": paused[:2]},
    ]


def test_the_number_of_turns_is_bounded(talks: Talks) -> None:
    again = answer([tool_use("look_up", {"place": "x"})], stop_reason="tool_use")
    row = row_of(talks.outcome(again, tools=[look_up], max_turns=3))
    assert (row["failure_class"], row["usage"]) == ("incomplete", {"input_tokens": 36, "output_tokens": 12})
    assert "3 turns" in row["error"]
    assert len(talks.server.requests) == 3


def test_a_model_that_changes_between_calls_fails(talks: Talks) -> None:
    row = row_of(
        talks.outcome(*calls_then_answer(tool_use("look_up", {"place": "x"}), model=SERVED_LATER), tools=[look_up])
    )
    assert row["failure_class"] == "serving_substitution"
    assert SERVED_LATER in row["error"]
    assert MODEL in row["error"]
    assert (row["model"], row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (MODEL, 24, 8)
    assert set(row["usage"]["by_model"]) == {MODEL, SERVED_LATER}


def test_a_call_that_fails_late_is_billed_with_what_came_before(talks: Talks, quick_retries: None) -> None:
    plays = [calls_then_answer(tool_use("look_up", {"place": "x"}))[0], error(400, "invalid_request_error", "bad")]
    row = row_of(talks.outcome(*plays, tools=[look_up]))
    assert (row["failure_class"], row["usage"], row["model"]) == (
        "bad_request",
        {"input_tokens": 12, "output_tokens": 4},
        MODEL,
    )


def test_an_attempt_that_is_made_again_counts_both(talks: Talks, quick_retries: None) -> None:
    first, last = calls_then_answer(tool_use("look_up", {"place": "x"}))
    outcome = talks.outcome(first, Play(message("x" * 99), keep=4, then="error"), first, last, tools=[look_up])
    row = row_of(outcome)
    assert row["usage"] == {"input_tokens": 24, "output_tokens": 8}
    assert row["meta"]["retries"] == 1
    assert [u["input_tokens"] for u in row["meta"]["retry_usage"]] == [24]
    assert len(talks.server.requests) == 4
