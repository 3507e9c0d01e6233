"""What the model calls of one attempt amount to: transcript, usage and model, whatever the user's code makes of them.

Whoever talks to a model (``pytest_hillclimb.claude``) finds the recording of the attempt it is called from in
``CURRENT_RECORDING`` and adds its calls there. Calls are read when something is asked, so what was billed of a call
that is still under way, or broke, is known at any moment and from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_hillclimb.engine.conversations import Spoken, merged
from pytest_hillclimb.engine.ends import Substituted
from pytest_hillclimb.engine.final_answer import AnswerError, Flaw
from pytest_hillclimb.model.case import Attachment
from pytest_hillclimb.model.jsonable import plain
from pytest_hillclimb.model.run import Run, Turn

Attach = Callable[..., Attachment]
"""``ctx.attach``."""

CURRENT_RECORDING: ContextVar[Recording | None] = ContextVar("hillclimb_recording", default=None)

_ALWAYS_TOLD = ("input_tokens", "output_tokens")
_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_LONG_FROM = 32_000  # tokens; no price list calls a prompt below that long, so short calls are not kept one by one
_SUMS = ("transcript", "usage", "tool_calls", "web_searches")


class ServedAnother(Substituted):
    """Calls that asked for the same model were answered by different ones.

    Fields: ``model`` (the one that answered first) and ``usage`` of all calls.
    """

    def __init__(self, text: str, *, model: str, usage: dict[str, Any] | None) -> None:
        super().__init__(text)
        self.model = model
        self.usage = usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One call of a model, as far as it has come.

    ``requested`` is the model that was asked for and ``model`` the one that answers, None as long as nothing was
    answered; ``whole`` tells whether the answer came to its end, and ``flaw`` why it is none that could be graded.
    """

    requested: str | None = None
    model: str | None = None
    usage: Mapping[str, Any] | None = None
    stop_reason: str | None = None
    tool_calls: int | None = None
    web_searches: int | None = None
    whole: bool = True
    flaw: Flaw | None = None

    @property
    def is_billed(self) -> bool:
        """Whether it is known to have cost something."""
        return self.usage is not None or self.whole


class Call(Protocol):
    """A call of a model that may still be under way."""

    def exchange(self) -> Exchange | None:
        """Return the call as far as it has come, None when nothing has come back."""

    def spoken(self, attach: Attach | None, tools: dict[str, str]) -> Spoken:
        """Return the turns of the call.

        :param attach: keeps images and documents of the turns; without it they are only named
        :param tools: the names of tools by the ids of their calls, of all calls of the attempt; more are added
        """


class Recording:
    """The calls of one attempt, in the order in which they were started. May be used from several threads.

    :param attach: keeps what turns must not hold as text (``ctx.attach``)
    :param requested: the model under test; where several models were asked, its answers name the run's model
    """

    def __init__(self, attach: Attach | None = None, requested: str | None = None) -> None:
        self._attach = attach
        self._requested = requested
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._runs: list[Run] = []

    def add(
        self,
        *,
        turns: Sequence[Turn] = (),
        usage: Mapping[str, Any] | None = None,
        model: str | None = None,
        stop_reason: str | None = None,
        tool_calls: int | None = None,
        web_searches: int | None = None,
    ) -> None:
        """Record a call that is over, or has failed after it was billed."""
        exchange = Exchange(
            usage=usage, model=model, stop_reason=stop_reason, tool_calls=tool_calls, web_searches=web_searches
        )
        self.follow(_Over(exchange, Spoken((), turns)))

    def follow(self, call: Call) -> None:
        """Record a call that is being started."""
        with self._lock:
            self._calls.append(call)

    def made(self, run: Run) -> None:
        """Take note of a run that a client made of some of these calls, and gave to the user's code."""
        with self._lock:
            self._runs.append(run)

    def billed(self) -> dict[str, Any]:
        """Return ``model`` and ``usage`` as far as they are known by now, for an attempt that has no run."""
        exchanges = [exchange for _, exchange in self._answered()]
        found = {"model": self._model(exchanges), "usage": _usage(exchanges)}
        return {key: value for key, value in found.items() if value is not None}

    def check_served(self) -> None:
        """Refuse calls that asked for the same model and were answered by different ones.

        :raises ServedAnother: when there are such
        """
        exchanges = [exchange for _, exchange in self._answered()]
        first: dict[str, str] = {}
        for each in exchanges:
            if each.requested is None or each.model is None:
                continue
            served = first.setdefault(each.requested, each.model)
            if served != each.model:
                text = f"asked for {each.requested}: one answer came from {served}, a later one from {each.model}"
                raise ServedAnother(text, model=served, usage=_usage(exchanges))

    def complete(self, run: Run) -> Run:
        """Return *run* with what its author did not give: transcript, usage, model, stop_reason and the counts.

        A run whose last answer by the model under test is none is refused, unless its author says how it has ended
        (``stop_reason`` or ``status``). An author who makes several runs and returns one of them gets the sums of all.

        :raises ServedAnother: when calls that asked for the same model were answered by different ones
        :raises AnswerError: when the last answer is none
        :raises BadValueError: when an answer held what a row cannot hold
        """
        answered = self._answered()
        if not answered:
            return run
        self.check_served()
        exchanges = [exchange for _, exchange in answered]
        self._check_final(run, exchanges)
        found: dict[str, Any] = {
            "usage": _usage(exchanges),
            "model": self._model(exchanges),
            "stop_reason": _last(each.stop_reason for each in exchanges),
            "tool_calls": _total(each.tool_calls for each in exchanges),
            "web_searches": _total(each.web_searches for each in exchanges),
        }
        given = self._given(run)
        if "transcript" not in given:
            tools: dict[str, str] = {}
            found["transcript"] = merged(call.spoken(self._attach, tools) for call, _ in answered) or None
        missing = {key: value for key, value in found.items() if value is not None and key not in given}
        return run.model_copy(update=plain(missing, "run"))

    def _check_final(self, run: Run, exchanges: Sequence[Exchange]) -> None:
        final = ([each for each in exchanges if each.requested == self._requested] or exchanges)[-1]
        if final.flaw is None or run.model_fields_set & {"stop_reason", "status"}:
            return
        raise AnswerError(
            f"the run's last answer: {final.flaw.text}; if it should end so, give the run a stop_reason or status",
            failure_class=final.flaw.failure_class,
            model=run.model or self._model(exchanges),
            usage=run.usage or _usage(exchanges),
        )

    def _given(self, run: Run) -> set[str]:
        """Return the keys that the run's author gave, not taken over from one of the runs made of these calls."""
        with self._lock:
            origins = [made for made in self._runs if run.usage is not None and made.usage == run.usage]
        own = {key: plain(getattr(run, key), key) for key in _SUMS} if origins else {}
        taken = {key for key, value in own.items() if any(plain(getattr(o, key), key) == value for o in origins)}
        return run.model_fields_set - taken

    def _answered(self) -> list[tuple[Call, Exchange]]:
        with self._lock:
            calls = list(self._calls)
        exchanges = ((call, call.exchange()) for call in calls)
        return [(call, exchange) for call, exchange in exchanges if exchange is not None]

    def _model(self, exchanges: Sequence[Exchange]) -> str | None:
        served = [each for each in exchanges if each.model is not None]
        under_test = [each for each in served if each.requested == self._requested]
        return _last(each.model for each in under_test or served)


@dataclass(frozen=True, slots=True)
class _Over:
    """A call that is over."""

    told: Exchange
    turns: Spoken

    def exchange(self) -> Exchange:
        return self.told

    def spoken(self, attach: Attach | None, tools: dict[str, str]) -> Spoken:
        return self.turns


def _usage(exchanges: Sequence[Exchange]) -> dict[str, Any] | None:
    """Return the usage of all calls, None when none is known.

    When several models answered, ``by_model`` holds the usage of each, because they have different prices. Of many
    tokens, ``calls`` holds the usage of each call, because a long prompt may have a price of its own.
    """
    billed = [each for each in exchanges if each.is_billed]
    if all(each.usage is None for each in billed):
        return None
    models = list(dict.fromkeys(each.model for each in billed if each.model is not None))
    if len(models) < 2:
        return _with_calls([each.usage or {} for each in billed])
    total = summed([each.usage or {} for each in billed])
    total["by_model"] = {model: _with_calls([e.usage or {} for e in billed if e.model == model]) for model in models}
    return total


def _with_calls(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total = summed(usages)
    prompt = sum(total[key] for key in _PROMPT if _is_number(total.get(key)))
    if len(usages) > 1 and prompt > _LONG_FROM:
        total["calls"] = [dict(usage) for usage in usages]
    return total


def summed(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of usages: counts are added, level by level; what else they say is kept where they agree.

    ``input_tokens`` and ``output_tokens`` are left out unless every usage tells them: a sum of some would look whole.
    """
    if len(usages) == 1:
        return dict(usages[0])
    total = _sum(list(usages))
    partly = [key for key in _ALWAYS_TOLD if any(not _is_number(usage.get(key)) for usage in usages)]
    return {key: value for key, value in total.items() if key not in partly}


def _sum(values: list[Any]) -> Any:
    if not values:
        return None
    if all(isinstance(value, Mapping) for value in values):
        keys = dict.fromkeys(key for value in values for key in value)
        return {key: _sum([value[key] for value in values if value.get(key) is not None]) for key in keys}
    if all(map(_is_number, values)):
        return sum(values)
    if all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    return values[0] if all(value == values[0] for value in values) else "mixed"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _last(values: Iterable[str | None]) -> str | None:
    known = [value for value in values if value is not None]
    return known[-1] if known else None
