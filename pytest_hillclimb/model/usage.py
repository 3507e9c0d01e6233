"""Reading what a call says it used: counts of tokens and of server tools, and the tiers that change their price.

The names are those of the Messages API. A usage is whatever an app reported, so nothing about its shape is taken for
granted: a count is an int from 0 (no bool, no float, no text), null or absent where it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

_MAX_COUNT = 10**15  # more than anything that is counted; a float holds every integer below it
_SHOWN = 60

_INPUT, _OUTPUT, _REASONING = "input_tokens", "output_tokens", "reasoning_tokens"
_CACHE_READ, _CACHE_WRITE = "cache_read_input_tokens", "cache_creation_input_tokens"
_SAME_AGAIN = ("total_tokens", "prompt_tokens", "completion_tokens")
_KNOWN = frozenset({_INPUT, _OUTPUT, _REASONING, _CACHE_READ, _CACHE_WRITE, *_SAME_AGAIN})

_LIFETIMES, _WRITE_5M, _WRITE_1H = "cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"
_TOOLS, _SEARCHES, _FETCHES = "server_tool_use", "web_search_requests", "web_fetch_requests"
_STEPS = "iterations"
_CALLS = "calls"


class UnpricedError(ValueError):
    """A usage says too little, or something that no price is known for; the text says what."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The counts of one usage. ``unknown`` are the paths of what may cost something and has no field here."""

    input: int
    output: int
    reasoning: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    web_searches: int = 0
    tier: str = "standard"
    speed: str = "standard"
    geo: str = "global"
    unknown: tuple[str, ...] = ()

    @property
    def prompt(self) -> int:
        """Tokens of the prompt, cached or not."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def tokens(self) -> int:
        """All tokens together."""
        return self.prompt + self.output + self.reasoning


def read_usage(usage: object) -> Usage:
    """Return the counts of a usage.

    Cache writes without a breakdown by lifetime are taken for those of 5 minutes, the API's default.

    :raises UnpricedError: when it is none, lacks input or output tokens, or counts tokens by something that is no count
    """
    if not isinstance(usage, Mapping) or not usage:
        raise UnpricedError("there is no usage")
    lifetimes = _mapping(usage.get(_LIFETIMES))
    in_5m, in_1h = _count(lifetimes, _WRITE_5M), _count(lifetimes, _WRITE_1H)
    searches = _mapping(usage.get(_TOOLS)).get(_SEARCHES)
    return Usage(
        input=_required(usage, _INPUT),
        output=_required(usage, _OUTPUT),
        reasoning=_count(usage, _REASONING),
        cache_read=_count(usage, _CACHE_READ),
        cache_write_5m=in_5m + max(0, _count(usage, _CACHE_WRITE) - in_5m - in_1h),
        cache_write_1h=in_1h,
        web_searches=searches if _is_count(searches) else 0,
        tier=_word(usage.get("service_tier"), "standard"),
        speed=_word(usage.get("speed"), "standard"),
        geo=_word(usage.get("inference_geo"), "global"),
        unknown=tuple(_unknown(usage)),
    )


def single_calls(usage: object, read: Callable[[object], Usage] = read_usage) -> list[Usage]:
    """Return the usages of the single calls that a usage is the sum of (``calls``), which decide the rates of each.

    Empty where they are not told, or do not amount to the sum.
    """
    calls = _mapping(usage).get(_CALLS)
    if not isinstance(calls, (list, tuple)) or not calls:
        return []
    try:
        whole, each = read(usage), [read(call) for call in calls]
    except UnpricedError:
        return []
    return each if all(sum(f(call) for call in each) == f(whole) for f in _AMOUNTS) else []


_AMOUNTS: tuple[Callable[[Usage], int], ...] = (
    lambda usage: usage.prompt,
    lambda usage: usage.output + usage.reasoning,
    lambda usage: usage.web_searches,
)


def total_tokens(usage: object) -> int | None:
    """Return the tokens that a budget counts, None when the usage does not tell.

    They are input, output, cache reads, cache writes and ``reasoning_tokens``, else ``total_tokens``, else
    ``prompt_tokens`` and ``completion_tokens``.
    """
    try:
        return read_usage(usage).tokens
    except UnpricedError:
        total, prompt, completion = (_mapping(usage).get(name) for name in _SAME_AGAIN)
        if _is_count(total):
            return total
        return prompt + completion if _is_count(prompt) and _is_count(completion) else None


def known_part(usage: object) -> Usage:
    """Return what is certain of a usage: what is no count, and what has no field here, counts as 0."""
    given = _mapping(usage)
    names = (_INPUT, _OUTPUT, _REASONING, _CACHE_READ, _CACHE_WRITE)
    lifetimes = _counts(_mapping(given.get(_LIFETIMES)), (_WRITE_5M, _WRITE_1H))
    return replace(read_usage({**given, **_counts(given, names), _LIFETIMES: lifetimes}), unknown=())


def least_tokens(usage: object) -> int:
    """Return the tokens that were used at least, by those counts that can be read; 0 when there are none."""
    total, prompt, completion = _counts(_mapping(usage), _SAME_AGAIN).values()
    parts = _mapping(_mapping(usage).get("by_model")).values()
    return max(known_part(usage).tokens, total, prompt + completion, sum(known_part(part).tokens for part in parts))


def _unknown(usage: Mapping[Any, Any]) -> Iterator[str]:
    """Yield what may cost something beyond the known counts: other tokens, tools, cache lifetimes and steps."""
    yield from _left(usage, "", (name for name in usage if str(name).endswith("_tokens") and name not in _KNOWN))
    yield from _left(usage.get(_LIFETIMES), _LIFETIMES, known=(_WRITE_5M, _WRITE_1H))
    tools = usage.get(_TOOLS)
    yield from _left(tools, _TOOLS, known=(_SEARCHES, _FETCHES))
    searches = _mapping(tools).get(_SEARCHES)
    if searches is not None and not _is_count(searches):
        yield f"{_TOOLS}.{_SEARCHES}"
    steps = usage.get(_STEPS)
    if steps is not None and not isinstance(steps, (list, tuple)):
        yield _STEPS
    # The totals leave out what is no step of the model itself, such as a compaction or an adviser's answer.
    for step in steps if isinstance(steps, (list, tuple)) else ():
        if (kind := _mapping(step).get("type")) != "message":
            yield f"{_STEPS} of type {_shown(kind)}"


def _left(value: object, path: str, names: Iterable[Any] | None = None, known: tuple[str, ...] = ()) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, Mapping):
        yield path
        return
    for name in value if names is None else names:
        count = value[name]
        if name not in known and count is not None and not (_is_count(count) and count == 0):
            yield f"{path}.{name}" if path else str(name)


def _required(usage: Mapping[Any, Any], name: str) -> int:
    if usage.get(name) is None:
        raise UnpricedError(f"the usage has no {name}")
    return _count(usage, name)


def _count(values: Mapping[Any, Any], name: str) -> int:
    value = values.get(name)
    if value is None:
        return 0
    if not _is_count(value):
        raise UnpricedError(f"{name} of the usage is no count: {_shown(value)}")
    return value


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT


def _counts(values: Mapping[Any, Any], names: Iterable[str]) -> dict[str, int]:
    found = {name: values.get(name) for name in names}
    return {name: value if _is_count(value) else 0 for name, value in found.items()}


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _word(value: object, default: str) -> str:
    return default if value is None else value if isinstance(value, str) else _shown(value)


def _shown(value: object) -> str:
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:  # a huge integer, or a user's __repr__
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
