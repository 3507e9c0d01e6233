"""The served-model rule: a response must come from the model that was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable

_ALIAS = re.compile(r"-latest\Z|-0\Z")
_SNAPSHOT = re.compile(r"[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2})")


def is_served(requested: str | None, served: str | None) -> bool:
    """Return whether *served* may answer for *requested*.

    Equal names do. Otherwise one trailing ``-latest`` or ``-0`` of the request is dropped, and the served name must be
    the remainder plus a date stamp (``-20250101``, ``@20250101``, ``-2025-01-01``) and nothing more. Without a request,
    or when the response names no model, there is nothing to check.
    """
    if not requested or not served or served == requested:
        return True
    base = _ALIAS.sub("", requested, count=1)
    return served.startswith(base) and _SNAPSHOT.fullmatch(served[len(base) :]) is not None


def requested_name(requested: str | None) -> Callable[[str], str]:
    """Return what gives the requested name of a served model: *requested* if it may answer for it, else its own."""
    return lambda served: requested if requested and is_served(requested, served) else served
