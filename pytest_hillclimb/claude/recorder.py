"""A thin recorder around a user's own client: what it asks and what it is answered goes to the attempt that calls it.

The SDK's middleware sees every HTTP attempt, whichever method, helper or copy of the client it comes from. A body that
is read later passes through a tee, so that the user's code reads it as it likes, to the end or not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

import anthropic
import httpx2

from pytest_hillclimb.claude.answer import Answer
from pytest_hillclimb.claude.transcript import CALLS, Transcriber
from pytest_hillclimb.engine.conversations import Spoken
from pytest_hillclimb.engine.final_answer import Flaw
from pytest_hillclimb.engine.recording import CURRENT_RECORDING, Attach, Exchange, Recording

Client = TypeVar("Client")


def record(client: Client) -> Client:
    """Return a copy of *client* whose calls are part of the attempt in which they are made; itself if they are already.

    What ``run_case`` does not return itself is then filled in: transcript, usage (summed), model, stop_reason,
    tool_calls and web_searches. In ``grade_case`` the calls count as the judge's. It shares the connections of
    *client*, has its type and all its options, its retries included, and does nothing outside of a trial.

    Recorded are ``messages.create``, plain and streamed, ``messages.stream`` and ``messages.parse``, the same of
    ``beta.messages``, tool runners, raw responses, and copies (``with_options``). Not recorded are message batches, and
    calls from threads that do not inherit the context: use ``asyncio.to_thread``, or run them in
    ``contextvars.copy_context()``.

    A run whose last answer by the model under test is none fails as it does with ``message``, unless the run has a
    ``stop_reason`` or ``status`` of its own: a tool call that was not forced or a paused turn left open, an unknown
    reason, a stream read to a premature end, a body that is no message.

    The SDK makes failed calls again by itself and unseen, within one try of the trial; give a client ``with_options
    (max_retries=0)`` to leave all retries to the trial.

    :param client: ``anthropic.Anthropic``, ``AsyncAnthropic``, or a client of theirs for another platform
    :raises TypeError: when *client* is none
    """
    with_middleware = getattr(client, "with_middleware", None)
    if with_middleware is None:
        raise TypeError(f"claude.record: expected a client of the anthropic SDK, got {type(client).__name__}")
    if any(isinstance(each, Recorder) for each in getattr(client, "middleware", ())):
        return client
    return cast(Client, with_middleware(Recorder(client, current)))


def current() -> list[Recording]:
    """Return where calls made here go by themselves: to the attempt that is under way, if one is."""
    recording = CURRENT_RECORDING.get()
    return [] if recording is None else [recording]


class Recorder(anthropic.Middleware):
    """Adds each attempt at a message to recordings.

    :param client: the client whose calls it sees, which can read their bodies
    :param recordings: returns where a call goes that is being made
    """

    def __init__(self, client: object, recordings: Callable[[], Sequence[Recording]]) -> None:
        self._client = client
        self._recordings = recordings

    def handle(self, request: anthropic.APIRequest, call_next: Any) -> Any:
        """Make a call of a sync client, and record it."""
        call = self._begin(request)
        response = call_next(request)
        if call is not None:
            call.follow(response)
        return response

    async def handle_async(self, request: anthropic.APIRequest, call_next: Any) -> Any:
        """Make a call of an async client, and record it."""
        call = self._begin(request)
        response = await call_next(request)
        if call is not None:
            call.follow(response)
        return response

    def _begin(self, request: anthropic.APIRequest) -> RecordedCall | None:
        recordings = self._recordings()
        path = request.url.partition("?")[0].rstrip("/")
        if not recordings or not path.endswith("/messages") or not isinstance(request.json, Mapping):
            return None
        call = RecordedCall(request.json, self._client)
        for recording in recordings:
            recording.follow(call)
        return call


class RecordedCall:
    """One HTTP attempt at a message, and as much of its answer as has been read."""

    def __init__(self, body: Mapping[str, Any], client: object) -> None:
        self._body = body
        self._client: Any = client
        self._response: httpx2.Response | None = None
        self._read: list[bytes] = []
        self._over = False
        self._whole_body = False
        self._answer: Answer | None = None

    def follow(self, response: Any) -> None:
        """Note what comes back; *response* is what the SDK gives a middleware."""
        http = getattr(response, "http_response", None)
        if not isinstance(http, httpx2.Response) or not http.is_success:
            return
        self._response = http
        if http.is_stream_consumed:
            self._over = self._whole_body = True
            return
        http.stream = _Tee(http.stream, self._read.append, self._end)

    @property
    def answer(self) -> Answer:
        """The answer as far as it has come."""
        if self._answer is not None:
            return self._answer
        over = self._over
        answer = self._told()
        if over:
            self._answer = answer
        return answer

    def exchange(self) -> Exchange | None:
        """Return the call for its recording, None when nothing has come back."""
        whole_body, answer = self._whole_body, self.answer
        # What the app left early, or saw break, is its own affair.
        flaw = self._flaw(answer) if whole_body or answer.stop_reason is not None else None
        requested = self._body.get("model")
        requested = requested if isinstance(requested, str) else None
        if not answer.message:
            return None if flaw is None else Exchange(requested=requested, whole=False, flaw=flaw)
        return Exchange(
            requested=requested,
            model=answer.model,
            usage=answer.usage,
            stop_reason=answer.stop_reason,
            tool_calls=sum(block.get("type") in CALLS for block in answer.content),
            web_searches=answer.web_searches,
            whole=answer.whole,
            flaw=flaw,
        )

    def spoken(self, attach: Attach | None, tools: dict[str, str]) -> Spoken:
        """Return the turns of the call; *attach* keeps their images and documents, *tools* the names of tools."""
        transcriber = Transcriber(attach, tools)
        asked = transcriber.request(self._body)
        answer, thread = self.answer, self._body.get("thread")
        continues = thread.get("previous_message_id") if isinstance(thread, Mapping) else None
        return Spoken(
            asked,
            transcriber.answer(answer.content),
            answer.whole,
            id=answer.id,
            continues=continues if isinstance(continues, str) else None,
        )

    def _flaw(self, answer: Answer) -> Flaw | None:
        choice = self._body.get("tool_choice")
        is_forced = isinstance(choice, Mapping) and choice.get("type") in ("any", "tool")
        return None if is_forced and answer.stop_reason == "tool_use" else answer.flaw

    def _end(self, whole_body: bool) -> None:
        self._whole_body = self._whole_body or whole_body
        self._over = self._over or not whole_body

    def _told(self) -> Answer:
        try:
            body = self._body_so_far()
        except (httpx2.HTTPError, RuntimeError):
            body = None
        if body is None:
            return Answer.of_json(None)
        if "json" not in body.headers.get("content-type", "").partition(";")[0]:
            return Answer.of_events(self._events(body))
        try:
            return Answer.of_json(body.json())
        except ValueError:
            return Answer.of_json(None)

    def _body_so_far(self) -> httpx2.Response | None:
        """Return the response with what was read of it, to be read once more."""
        if self._response is None or not isinstance(self._response.stream, _Tee):
            return self._response
        raw = b"".join(self._read)
        return httpx2.Response(200, headers=self._response.headers, content=raw, request=self._response.request)

    def _events(self, body: httpx2.Response) -> Iterator[Any]:
        """Yield the events of a body; the SDK knows how each platform encodes them."""
        with suppress(Exception):  # an error event, or an event that is not whole: what came before it stands
            yield from anthropic.Stream[Any](cast_to=object, response=body, client=self._client)


class _Tee(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body that tells what is read of it."""

    def __init__(self, body: Any, read: Callable[[bytes], None], end: Callable[[bool], None]) -> None:
        self._body = body
        self._told = read
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._body:
            self._told(chunk)
            yield chunk
        self._end(True)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._body:
            self._told(chunk)
            yield chunk
        self._end(True)

    def close(self) -> None:
        self._end(False)
        self._body.close()

    async def aclose(self) -> None:
        self._end(False)
        await self._body.aclose()
