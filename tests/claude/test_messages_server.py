"""The scripted server itself: the real SDK reads from it what was put into it, plain and streamed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anthropic
import httpx2
import messages_server as stub
import pytest
from messages_server import MessagesServer, answer, error, message, sse

CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Which capital? That of France.", "signature": "sig"},
    {"type": "text", "text": "The capital of France is Paris, on the Seine."},
    {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"place": "Paris", "depth": [1, 2]}},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "Paris"}},
]
USAGE = {
    "input_tokens": 9,
    "output_tokens": 31,
    "cache_read_input_tokens": 5,
    "cache_creation_input_tokens": 3,
    "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2},
    "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
    "service_tier": "standard",
}
ASKED: dict[str, Any] = {"model": "claude-haiku-4-5", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def client(messages_server: MessagesServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=messages_server.url, api_key="none", max_retries=0)


@pytest.mark.parametrize("streams", [False, True])
def test_a_message_arrives_as_it_was_given(
    messages_server: MessagesServer, client: anthropic.Anthropic, streams: bool
) -> None:
    messages_server.play(answer(CONTENT, usage=USAGE, stop_reason="tool_use"))
    if streams:
        with client.messages.stream(**ASKED) as stream:
            got = stream.get_final_message()
    else:
        got = client.messages.create(**ASKED)
    assert [block.to_dict() for block in got.content] == CONTENT
    assert got.usage.to_dict() == USAGE
    assert (got.stop_reason, got.model) == ("tool_use", stub.MODEL)
    (request,) = messages_server.requests
    assert (request.streams, request.prompt, request.headers["content-type"]) == (streams, "hi", "application/json")


@pytest.mark.parametrize("streams", [False, True])
def test_events_given_as_text_serve_both_kinds_of_requests(
    messages_server: MessagesServer, client: anthropic.Anthropic, streams: bool
) -> None:
    text = b"".join(stub.event_bytes(name, data) for name, data in stub.events_of(message(CONTENT))).decode()
    messages_server.play(sse(text))
    if streams:
        with client.messages.stream(**ASKED) as stream:
            got = stream.get_final_message()
    else:
        got = client.messages.create(**ASKED)
    assert [block.to_dict() for block in got.content] == CONTENT


def test_plays_follow_each_other_and_the_last_goes_on(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.play(error(529, "overloaded_error", headers={"retry-after": "7"}), answer("a"), answer("b"))
    with pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(**ASKED)
    assert (caught.value.status_code, caught.value.response.headers["retry-after"]) == (529, "7")
    assert [client.messages.create(**ASKED).content[0].to_dict()["text"] for _ in range(3)] == ["a", "b", "b"]
    assert [r.number for r in messages_server.requests] == [0, 1, 2, 3]


def test_an_answer_may_depend_on_the_request(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.script = lambda request: answer(f"You said {request.prompt}, under {request.system or 'nothing'}")
    got = client.messages.create(**ASKED, system=[{"type": "text", "text": "rules"}])
    assert got.content[0].to_dict()["text"] == "You said hi, under rules"


@pytest.mark.parametrize("then", ["reset", "close"])
@pytest.mark.parametrize("keep", [0, 3])
@pytest.mark.parametrize("streams", [False, True])
def test_connections_break(
    messages_server: MessagesServer, client: anthropic.Anthropic, then: str, keep: int, streams: bool
) -> None:
    messages_server.play(stub.Play(message("x" * 100), keep=keep, then=then))
    with pytest.raises((anthropic.APIConnectionError, httpx2.TransportError)):
        list(client.messages.create(**ASKED, stream=True)) if streams else client.messages.create(**ASKED)


def test_nobody_listens_at_the_refused_address() -> None:
    client = anthropic.Anthropic(base_url=stub.refused_url(), api_key="none", max_retries=0)
    with pytest.raises(anthropic.APIConnectionError):
        client.messages.create(**ASKED)


def test_the_server_notices_who_has_gone(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.play(stub.Play(message("x" * 100), keep=3, then="pings"))
    with client.messages.create(**ASKED, stream=True) as stream:
        next(iter(stream))
        assert not messages_server.requests[0].gone.is_set()
    assert messages_server.requests[0].gone.wait(10)


def test_the_server_runs_as_a_process() -> None:
    with subprocess.Popen(
        [sys.executable, stub.__file__, "--text", "Lyon"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            client = anthropic.Anthropic(base_url=process.stdout.readline().strip(), api_key="none", max_retries=0)
            assert client.messages.create(**ASKED).content[0].to_dict()["text"] == "Lyon"
        finally:
            process.terminate()
