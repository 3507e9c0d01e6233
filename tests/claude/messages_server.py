"""A scripted Messages API on loopback: real HTTP, plain and streaming, with every way of failing that tests need.

A play says how one request is answered. A server is given a list of plays (request k gets plays[k], the last one goes
on) or a function of the request::

    with MessagesServer([error(529, "overloaded_error"), answer("Paris")]) as server:
        client = anthropic.AsyncAnthropic(base_url=server.url, api_key="none")

It can also be run as a process: ``python messages_server.py --text Paris`` prints its address and serves until it is
ended; ``serve(play)`` does the same with a function of the request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

MODEL = "claude-haiku-4-5-20251001"
USAGE = {"input_tokens": 12, "output_tokens": 4}
_PIECE = 16  # characters of a delta
_MAX_BODY = 64 * 1024 * 1024


@dataclass(eq=False)
class Request:
    """One request as it came: JSON body, headers in lower case, ``at`` on the monotonic clock, its number from 0."""

    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    number: int
    path: str = "/v1/messages"
    gone: threading.Event = field(default_factory=threading.Event)
    """Set once the client has closed the connection before its answer was complete."""

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def prompt(self) -> str:
        """The text of the last message."""
        return text_of(self.body["messages"][-1]["content"])

    @property
    def system(self) -> str:
        return text_of(self.body.get("system", ""))


def text_of(content: Any) -> str:
    """Return the text blocks of a content, joined."""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if isinstance(block, Mapping))


# --- plays ------------------------------------------------------------------------------------------------------------


def message(content: str | Sequence[Mapping[str, Any]] = "Paris", **fields: Any) -> dict[str, Any]:
    """Return a message as the API gives it; a text becomes one text block, other *fields* replace the defaults."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [dict(block) for block in content]
    return {
        "id": "msg_stub1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": blocks,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": dict(USAGE),
        **fields,
    }


def tool_use(name: str, arguments: Mapping[str, Any], id_: str = "toolu_1") -> dict[str, Any]:
    """Return a block by which the model calls a tool."""
    return {"type": "tool_use", "id": id_, "name": name, "input": dict(arguments)}


@dataclass(frozen=True)
class Play:
    """How one request is answered; what is not given happens as it does in a sound answer.

    Either ``message`` (sent whole, or as events to a request that streams), or ``events`` (server-sent events as
    text), or ``status`` with ``body`` and ``headers``, whose names are in lower case. ``wait`` seconds pass before
    anything is sent, ``pace`` seconds before each event (or each tenth of a plain body). After ``keep`` events (or
    tenths) an answer ends ``then``:

    - ``end``: with the last of them, in good order
    - ``error``: with an ``error`` event of type ``error_type``
    - ``reset``: the connection is reset
    - ``close``: the connection is closed in the middle of the body
    - ``pings``: pings for ever, one each 20 ms
    - ``hang``: nothing more is sent

    With ``keep`` 0 and ``reset`` or ``close`` there is no answer at all, not even a status.
    """

    message: Mapping[str, Any] | None = None
    events: str | None = None
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    pace: float = 0.0
    keep: int | None = None
    then: str = "end"
    error_type: str = "overloaded_error"


Script = Sequence[Play] | Callable[[Request], Play]


def answer(content: str | Sequence[Mapping[str, Any]] = "Paris", **fields: Any) -> Play:
    """Return the play of a sound answer; see ``message``."""
    return Play(message(content, **fields))


def error(status: int, kind: str, text: str = "no", headers: Mapping[str, str] | None = None) -> Play:
    """Return the play of an error as the API words it."""
    body = {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_stub"}
    return Play(status=status, body=body, headers={"request-id": "req_stub", **(headers or {})})


def sse(events: str) -> Play:
    """Return the play of given server-sent events; a request that does not stream gets the message they make."""
    return Play(events=events)


def events_of(whole: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the events, by name, as which the API streams a message."""
    usage = dict(whole["usage"])
    begun = {**whole, "content": [], "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
    begun.pop("stop_details", None)
    events = [("message_start", {"message": begun})]
    for index, block in enumerate(whole["content"]):
        start, deltas = _block_events(block)
        events.append(("content_block_start", {"index": index, "content_block": start}))
        events += [("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
        events.append(("content_block_stop", {"index": index}))
    delta = {key: whole.get(key) for key in ("stop_reason", "stop_sequence", "stop_details", "container")}
    told = {key: value for key, value in usage.items() if key not in ("service_tier", "cache_creation")}
    events += [("message_delta", {"delta": delta, "usage": told}), ("message_stop", {})]
    return [(name, {"type": name, **data}) for name, data in events]


def _block_events(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the block as it starts, and the deltas that complete it."""
    kind = block["type"]
    if kind == "text":
        citations = [{"type": "citations_delta", "citation": each} for each in block.get("citations") or ()]
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        return {**block, "text": ""} | ({"citations": []} if citations else {}), deltas + citations
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block.get("signature", "")})
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind in ("tool_use", "server_tool_use"):
        arguments = json.dumps(block["input"])
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": p} for p in _pieces(arguments)]
    return dict(block), []


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]


def event_bytes(name: str, data: Mapping[str, Any]) -> bytes:
    """Return an event as it goes over the wire."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def _parsed(events: str) -> Iterator[dict[str, Any]]:
    for line in events.splitlines():
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


def _plain(events: str) -> Play:
    """Return what a request that does not stream would get in place of *events*: a message, or an error."""
    whole: dict[str, Any] = {}
    for event in _parsed(events):
        match event["type"]:
            case "message_start":
                whole = dict(event["message"])
            case "content_block_start":
                whole["content"].append(dict(event["content_block"]))
            case "content_block_delta":
                _add(whole["content"][event["index"]], event["delta"])
            case "message_delta":
                whole |= {key: value for key, value in event["delta"].items() if value is not None}
                whole["usage"] = {**whole["usage"], **event["usage"]}
            case "error":
                status = 529 if event["error"]["type"] == "overloaded_error" else 500
                return Play(status=status, body=event)
    return Play(whole)


def _add(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key in ("text", "thinking", "signature"):
        if key in delta:
            block[key] = block.get(key, "") + delta[key]
    if "partial_json" in delta:
        block["_json"] = block.get("_json", "") + delta["partial_json"]
        try:
            block["input"] = json.loads(block["_json"])
        except ValueError:
            return
        del block["_json"]


# --- the server -------------------------------------------------------------------------------------------------------


class MessagesServer:
    """Serves ``POST /v1/messages`` from a thread of its own between ``with`` and its end.

    :param script: the plays, or a function of the request that returns one
    :param port: where to listen on 127.0.0.1; 0 for any free port
    """

    def __init__(self, script: Script = (), *, port: int = 0) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", port))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="messages-server", daemon=True)
        self._ready = threading.Event()
        self._over = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def play(self, *plays: Play) -> None:
        """Answer the requests from now on with these plays."""
        self.requests.clear()
        self.script = plays

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_post("/v1/messages", self._handle)
        app.router.add_route("*", "/{path:.*}", _unknown)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.05, access_log=None)
        await runner.setup()
        await web.SockSite(runner, self._socket).start()
        self._ready.set()
        await self._over.wait()
        await runner.cleanup()

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in http.headers.items()}
        body = await http.json()
        with self._lock:
            request = Request(body, headers, time.monotonic(), len(self.requests), http.path)
            self.requests.append(request)
            play = self._choose(request)
        try:
            return await _Sender(play, request, http).send()
        except asyncio.CancelledError:
            request.gone.set()
            raise
        except ConnectionResetError:
            request.gone.set()
            return web.Response()

    def _choose(self, request: Request) -> Play:
        if callable(self.script):
            return self.script(request)
        if not self.script:
            return error(500, "api_error", "the script of the test has no plays")
        return self.script[min(request.number, len(self.script) - 1)]


async def _unknown(http: web.Request) -> web.Response:
    body = {"type": "error", "error": {"type": "not_found_error", "message": f"no {http.path} here"}}
    return web.json_response(body, status=404)


class _Sender:
    """Sends one answer."""

    def __init__(self, play: Play, request: Request, http: web.Request) -> None:
        self._play = _plain(play.events) if play.events is not None and not request.streams else play
        self._request = request
        self._http = http

    async def send(self) -> web.StreamResponse:
        play = self._play
        await asyncio.sleep(play.wait)
        if play.keep == 0 and play.then in ("reset", "close"):
            self._cut()
            return web.Response()
        if play.message is None and play.events is None:
            return await self._send_parts(_tenths(_body_bytes(play.body)), "application/json")
        if not self._request.streams:
            return await self._send_parts(_tenths(_body_bytes(play.message)), "application/json")
        if play.events is not None:
            parts = [f"{block}\n\n".encode() for block in play.events.strip().split("\n\n")]
        else:
            parts = [event_bytes(name, data) for name, data in events_of(play.message or {})]
        return await self._send_parts(parts, "text/event-stream")

    async def _send_parts(self, parts: list[bytes], kind: str) -> web.StreamResponse:
        play, is_plain = self._play, kind == "application/json"
        response = web.StreamResponse(status=play.status, headers={"content-type": kind, **play.headers})
        if is_plain:
            response.content_length = sum(map(len, parts))
        await response.prepare(self._http)
        for part in parts[: play.keep]:
            await asyncio.sleep(play.pace)
            await response.write(part)
        await self._finish(response, is_plain)
        return response

    async def _finish(self, response: web.StreamResponse, is_plain: bool) -> None:
        match self._play.then:
            case "error":
                kind = self._play.error_type
                error_ = {"details": None, "type": kind, "message": kind.removesuffix("_error").capitalize()}
                await response.write(event_bytes("error", {"type": "error", "error": error_}))
            case "reset":
                await asyncio.sleep(0.02)  # what was sent must arrive before the reset throws it away
                self._cut()
                return
            case "close":
                transport = self._http.transport
                if transport is not None:
                    transport.close()
                return
            case "pings":
                while not is_plain:
                    await response.write(event_bytes("ping", {"type": "ping"}))
                    await asyncio.sleep(0.02)
                await asyncio.Event().wait()
            case "hang":
                await asyncio.Event().wait()
        await response.write_eof()

    def _cut(self) -> None:
        transport = self._http.transport
        if transport is None:
            return
        if self._play.then == "reset":
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        else:
            transport.close()


def _body_bytes(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def _tenths(body: bytes) -> list[bytes]:
    size = max(1, -(-len(body) // 10))
    return [body[start : start + size] for start in range(0, len(body), size)]


def refused_url() -> str:
    """Return an address of loopback at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


# --- as a process -----------------------------------------------------------------------------------------------------


def serve(script: Script, *, port: int = 0) -> None:
    """Serve until the process is interrupted or ended; the first line printed is the address."""
    with MessagesServer(script, port=port) as server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


def main() -> None:
    """Serve one text as the answer to everything."""
    parser = argparse.ArgumentParser(description="A scripted Messages API on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--text", default="Paris")
    options = parser.parse_args()
    serve([answer(options.text)], port=options.port)


if __name__ == "__main__":
    main()
