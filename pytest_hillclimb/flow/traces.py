"""Transcripts as files: ``traces/<id>_rep<k>.json``, byte for byte what ``JSON.stringify(turns, null, 2)`` writes.

Pattern: a small formatter of its own, because numbers are spelled as JavaScript spells them (``1.0`` is ``1``). It is
also quicker than the one of the standard library, which yields piece by piece once an indent is asked for. Turns are
formatted one by one, so that of a transcript over the cap no more is held than is kept.

Accepted trade-offs: a transcript over the cap loses its end, whatever that holds. Integers keep every digit, where
JavaScript would round beyond 2**53; keys keep their order, where JavaScript would put integer-like ones first.

Scope: plain JSON data, as ``model.jsonable.plain`` gives it.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pytest_hillclimb.model.ids import id_text
from pytest_hillclimb.model.jsonable import escape_surrogates, finite

MAX_TRACE_BYTES = 64 * 1024 * 1024

_OPEN, _BETWEEN, _CLOSE = b"[\n  ", b",\n  ", b"\n]"

_quote = json.JSONEncoder(ensure_ascii=False).encode


class Trace(NamedTuple):
    """The bytes of a trace file, and what they lack."""

    data: bytes
    truncated: dict[str, int] | None = None
    """For a transcript over the cap: ``kept_turns``, ``turns``, ``kept_bytes`` and ``bytes``; None for a whole one."""


def encode_turns(turns: list[Any], max_bytes: int = MAX_TRACE_BYTES) -> Trace:
    """Return a transcript as its file holds it: all turns, or the first ones that fit.

    :param turns: a list of plain JSON data
    :param max_bytes: cap on the size of the file; from 2, the size of an empty list
    :raises BadValueError: for a number that is not finite
    """
    kept: list[bytes] = []
    kept_size = size = len(b"[]")
    for number, turn in enumerate(turns):
        text = _encoded(_format(turn, "\n  "))
        size += len(text) + (len(_BETWEEN) if number else len(_OPEN) + len(_CLOSE) - len(b"[]"))
        if size <= max_bytes:
            kept.append(text)
            kept_size = size
    data = _OPEN + _BETWEEN.join(kept) + _CLOSE if kept else b"[]"
    if len(kept) == len(turns):
        return Trace(data)
    return Trace(data, {"kept_turns": len(kept), "turns": len(turns), "kept_bytes": kept_size, "bytes": size})


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return escape_surrogates(text).encode()


def _format(value: Any, newline: str) -> str:
    """Return a value as text; *newline* is the line break and indent of the line that it stands on."""
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, float):
        return id_text(finite(value, "transcript"))
    if not value or not isinstance(value, (dict, list)):
        return json.dumps(value)
    inner = newline + "  "
    if isinstance(value, dict):
        items = [f"{_quote(key)}: {_format(item, inner)}" for key, item in value.items()]
        return "{" + inner + f",{inner}".join(items) + newline + "}"
    return "[" + inner + f",{inner}".join([_format(item, inner) for item in value]) + newline + "]"
