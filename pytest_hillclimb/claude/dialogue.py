"""The calls that make up one run: each under the trial's deadline, each tried once, each accounted for."""

from __future__ import annotations

import asyncio
import json
import math
from contextlib import suppress
from typing import Any

import anthropic

from pytest_hillclimb.claude.answer import Answer
from pytest_hillclimb.claude.recorder import Recorder, current
from pytest_hillclimb.engine.app import Context
from pytest_hillclimb.engine.ends import TrialTimeout
from pytest_hillclimb.engine.final_answer import AnswerError
from pytest_hillclimb.engine.recording import Recording
from pytest_hillclimb.errors import HillclimbError
from pytest_hillclimb.model.run import Run

MAX_TOKENS = 4096
_GRACE_S = 1.0  # the engine ends a trial at its deadline; a request's own timeout only stands behind that
_UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError, anthropic.APIResponseValidationError)

_clients: dict[asyncio.AbstractEventLoop, anthropic.AsyncAnthropic] = {}
"""Kept for good, also after their loops: the SDK closes a client that is collected on whatever loop then runs."""


class Dialogue:
    """Makes calls with the request fields that they share, and makes a run of them.

    :param ctx: the attempt's context
    :param client: an async client of the SDK; None for one that is configured by the environment
    :param request: fields of ``messages.create``
    """

    def __init__(self, ctx: Context, client: Any, request: dict[str, Any]) -> None:
        if client is not None and not (hasattr(client, "with_middleware") and hasattr(client, "__aenter__")):
            raise TypeError(f"claude: expected an async client (AsyncAnthropic), got {type(client).__name__}")
        self._ctx = ctx
        self._streams = bool(request.pop("stream", True))
        self._timeout = request.pop("timeout", None)
        self._request = {"model": ctx.model, "max_tokens": MAX_TOKENS, **request}
        if not self._request["model"]:
            raise HillclimbError("claude: no model is named; give model=, or run with --hillclimb-model")
        self._recording = Recording(ctx.attach, self._request["model"])
        client = client if client is not None else _client_of_loop()
        outer = [each for each in client.middleware if not isinstance(each, Recorder)]
        self._attempts = current()
        recordings = [self._recording, *self._attempts]
        self._client = client.with_options(max_retries=0, middleware=[*outer, Recorder(client, lambda: recordings)])

    async def ask(self, messages: list[Any]) -> Answer:
        """Return the answer to *messages*, however it ended.

        :raises TrialTimeout: when the deadline has passed
        :raises ServedAnother: when another model answers than before
        """
        try:
            if self._ctx.remaining() <= 0:
                raise TrialTimeout(f"{self._ctx.execution.label}: wall-clock ceiling exceeded before a call")
            answer = await self._answer({**self._request, "messages": messages, "timeout": self._request_timeout()})
        except Exception as error:
            self._bill(error)
            raise
        self._recording.check_served()
        return answer

    def run(self, answer: Answer, output: str) -> Run:
        """Return the run that ends with *answer*.

        :raises AnswerError: when it ends in the middle of something
        """
        if (flaw := answer.flaw) is not None:
            raise self.failure(flaw.failure_class, flaw.text)
        details = answer.message.get("stop_details")
        more = {} if details is None else {"stop_details": details}
        run = self._recording.complete(Run.model_validate({"output": output, **more}))
        for attempt in self._attempts:
            attempt.made(run)
        return run

    def failure(self, failure_class: str, text: str) -> AnswerError:
        """Return the error that says what is wrong with the answer, with what was billed so far."""
        billed = self._recording.billed()
        return AnswerError(
            f"claude: {text}", failure_class=failure_class, model=billed.get("model"), usage=billed.get("usage")
        )

    async def _answer(self, request: dict[str, Any]) -> Answer:
        client = self._client.beta if "betas" in request else self._client
        if not self._streams:
            with suppress(*_UNREADABLE):
                return Answer.of_json(_data(await client.messages.create(**request)))
            return Answer.of_json(None)
        events: list[object] = []
        with suppress(*_UNREADABLE):
            async with await client.messages.create(**request, stream=True) as stream:
                async for event in stream:
                    events.append(_data(event))
        return Answer.of_events(events)

    def _request_timeout(self) -> anthropic.Timeout:
        """Return the timeouts of the client, none longer than the trial lasts."""
        own = anthropic.Timeout(self._client.timeout if self._timeout is None else self._timeout)
        longest = self._ctx.remaining() + _GRACE_S
        limits = {name: min(longest, math.inf if value is None else value) for name, value in own.as_dict().items()}
        return anthropic.Timeout(**{name: None if value == math.inf else value for name, value in limits.items()})

    def _bill(self, error: Exception) -> None:
        """Have *error* tell what was billed by now, unless it does."""
        for name, value in self._recording.billed().items():
            if getattr(error, name, None) is None:
                with suppress(AttributeError, TypeError):
                    setattr(error, name, value)


def _data(received: Any) -> object:
    """Return what the SDK has received as data; it gives what is no JSON object as it is."""
    return received.to_dict(mode="json", warnings=False) if isinstance(received, anthropic.BaseModel) else received


def _client_of_loop() -> anthropic.AsyncAnthropic:
    """Return the client that all runs on this event loop share, and with it their connections."""
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        client = _clients[loop] = anthropic.AsyncAnthropic()
    return client
