"""Conversations with tools that the API runs itself: the SDK sends their results back in other words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from claude_lab import ClaudeLab, async_client, sync_client
from messages_server import MessagesServer, answer, tool_use

from pytest_hillclimb import claude

MakeLab = Callable[..., ClaudeLab]
WEB = {"type": "web_search_20250305", "name": "web_search"}


def server_use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": arguments}


def server_result(kind: str, content: Any) -> dict[str, Any]:
    return {"type": f"{kind}_tool_result", "tool_use_id": "srvtoolu_1", "content": content}


FOUND = {"type": "web_search_result", "url": "https://x.y", "title": "X", "encrypted_content": "E", "page_age": None}
SEARCH = [server_use("web_search", query="q", limit=2), server_result("web_search", [FOUND])]
FETCHED = {
    "url": "https://x.y",
    "type": "web_fetch_result",
    "retrieved_at": None,
    "content": {"type": "document", "title": "X", "source": {"type": "text", "media_type": "text/plain", "data": "T"}},
}
RAN = {"type": "bash_code_execution_result", "stdout": "a", "stderr": "", "return_code": 0, "content": []}
BOOK = tool_use("book", {"zone": "a", "amount": 2, "nested": {"y": 1, "b": 2}})
FIRST: dict[str, list[dict[str, Any]]] = {
    "search": SEARCH,
    "search, text, tool": [*SEARCH, {"type": "text", "text": "now"}, BOOK],
    "search refused": [
        SEARCH[0],
        server_result("web_search", {"type": "web_search_tool_result_error", "error_code": "unavailable"}),
    ],
    "fetch": [server_use("web_fetch", url="https://x.y"), server_result("web_fetch", FETCHED)],
    "code": [server_use("bash_code_execution", command="ls"), server_result("bash_code_execution", RAN)],
    "code, tool": [server_use("bash_code_execution", command="ls"), server_result("bash_code_execution", RAN), BOOK],
    "upload": [{"type": "text", "text": "Here."}, {"type": "container_upload", "file_id": "file_1"}],
    "unknown": [{"type": "text", "text": "Here."}, {"type": "novelty", "z": 1, "a": None, "b": {"y": 1, "c": 2}}],
}


def book(zone: str, amount: int = 1, nested: dict[str, int] | None = None) -> str:
    """Book."""
    return "booked"


async def by_conversation(ctx: Any, server: MessagesServer) -> Any:
    return await claude.conversation(ctx, async_client(server), messages="hi", tools=[book, WEB])


async def by_conversation_plain(ctx: Any, server: MessagesServer) -> Any:
    return await claude.conversation(ctx, async_client(server), messages="hi", tools=[book, WEB], stream=False)


def loop(server: MessagesServer, ask: Any) -> Any:
    client = claude.record(sync_client(server))
    said: list[Any] = [{"role": "user", "content": "hi"}]
    while True:
        got = ask(client, {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": said, "tools": [WEB]})
        said.append({"role": "assistant", "content": got.content})
        uses = [block.id for block in got.content if block.type == "tool_use"]
        if uses:
            results = [{"type": "tool_result", "tool_use_id": each, "content": "booked"} for each in uses]
            said.append({"role": "user", "content": results})
        elif got.stop_reason != "pause_turn":
            return {"output": got.content[-1].text}


async def by_record(ctx: Any, server: MessagesServer) -> Any:
    return await asyncio.to_thread(loop, server, lambda client, asked: client.messages.create(**asked))


async def by_record_beta(ctx: Any, server: MessagesServer) -> Any:
    return await asyncio.to_thread(loop, server, lambda client, asked: client.beta.messages.create(**asked))


async def by_record_stream(ctx: Any, server: MessagesServer) -> Any:
    def ask(client: Any, asked: Any) -> Any:
        with client.messages.stream(**asked) as stream:
            return stream.get_final_message()

    return await asyncio.to_thread(loop, server, ask)


WAYS = [by_conversation, by_conversation_plain, by_record, by_record_beta, by_record_stream]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", FIRST)
def test_each_turn_stands_once(claude_lab: MakeLab, messages_server: MessagesServer, kind: str, way: Any) -> None:
    blocks = FIRST[kind]
    goes_on = "tool_use" if blocks[-1] is BOOK else "pause_turn"
    last = [*SEARCH, {"type": "text", "text": "done"}]
    messages_server.play(answer(blocks, stop_reason=goes_on), answer(SEARCH, stop_reason="pause_turn"), answer(last))

    async def run_case(case: Any, ctx: Any) -> Any:
        return await way(ctx, messages_server)

    lab = claude_lab(run_case)
    outcome = lab.outcome()
    told = outcome.transcript or []
    uses = sum(block["type"] in ("server_tool_use", "tool_use") for block in [*blocks, *SEARCH, *last])
    assert [turn["role"] for turn in told].count("user") == 1
    assert [turn["role"] for turn in told].count("tool_call") == uses
    assert [turn["role"] for turn in told].count("tool_result") == uses
    assert told[-1]["content"] == "done"
    assert not {"tool_result", "web_search_tool_result"} & {turn.get("name") for turn in told}
