"""How messages about catalogs name things."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping

_short = reprlib.Repr()
_short.maxstring = 80

CASES_WANTED = "expected a list of cases, or a mapping whose key 'cases' holds one"


def quoted(text: str) -> str:
    """Return *text* in quotes, with control characters escaped and the middle of a long text left out."""
    return _short.repr(text)


def kind_of(value: object) -> str:
    """Return what an author would call the kind of *value*, such as ``a list``."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    return f"a value of type {type(value).__name__}"
