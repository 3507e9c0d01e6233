"""Transcripts as files: ``traces/<id>_rep<k>.json``, byte for byte what ``JSON.stringify(turns, null, 2)`` writes.

Pattern: a small formatter of its own, because numbers are spelled as JavaScript spells them (``1.0`` is ``1``). It is
also quicker than the one of the standard library, which yields piece by piece once an indent is asked for.

Accepted trade-offs: integers keep every digit, where JavaScript would round beyond 2**53; keys keep their order, where
JavaScript would put integer-like ones first.

Scope: plain JSON data, as ``model.jsonable.plain`` gives it.
"""

from __future__ import annotations

import json
from typing import Any

from pytest_hillclimb.model.ids import id_text
from pytest_hillclimb.model.jsonable import escape_surrogates, finite

_quote = json.JSONEncoder(ensure_ascii=False).encode


def trace_name(safe_id: str, rep: int) -> str:
    """Return the file name of the trace of a path-safe id and a repetition."""
    return f"{safe_id}_rep{rep}.json"


def encode_turns(turns: list[Any]) -> bytes:
    """Return a transcript as the bytes of its file.

    :param turns: a list of plain JSON data
    :raises BadValueError: for a number that is not finite
    """
    text = _format(turns, "\n")
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
