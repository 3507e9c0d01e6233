"""Reading exceptions of unknown make: their chain of causes, attributes, text and place, without ever raising."""

from __future__ import annotations

import sysconfig
import traceback
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_ERROR_CHARS = 100_000
_MAX_FRAMES = 6
_MAX_GROUPED = 10
_PACKAGE = str(Path(__file__).parent.parent)
_STDLIB = sysconfig.get_path("stdlib") + "/"


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and what it was raised from or groups, outermost first, each once."""
    seen: set[int] = set()
    waiting: deque[BaseException] = deque([error])
    while waiting:
        current = waiting.popleft()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions)
        source = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        if source is not None:
            waiting.append(source)


def attribute(value: object, *path: str) -> Any:
    """Return an attribute (or mapping key) of a foreign object by *path*, None when there is none or it raises."""
    for name in path:
        try:
            value = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
        except BaseException:  # properties of foreign objects may raise anything
            return None
    return value


def error_text(error: BaseException) -> str:
    """Return the message of an exception, its type's name when it has none or cannot be read; capped.

    The message of a group names what it holds.
    """
    try:
        text = str.__str__(str(error))
    except BaseException:  # a foreign __str__ may raise anything
        text = f"<{type(error).__name__}: its message cannot be read>"
    if isinstance(error, BaseExceptionGroup):
        text += ": " + "; ".join(f"{type(e).__name__}: {error_text(e)}" for e in error.exceptions[:_MAX_GROUPED])
    return (text or type(error).__name__)[:MAX_ERROR_CHARS]


def cause_text(error: BaseException) -> str | None:
    """Return type and message of what an exception was raised from in the end, None when it wraps nothing.

    Members of a group are named by the group's own message.
    """
    *_, last = causes(error)
    if last is error or any(isinstance(each, BaseExceptionGroup) for each in causes(error)):
        return None
    return f"{type(last).__name__}: {error_text(last)}"


def error_place(error: BaseException) -> list[str]:
    """Return the last frames of the user's code that an exception came through, innermost last."""
    try:
        frames = traceback.extract_tb(error.__traceback__)
    except BaseException:
        return []
    shown = [f for f in frames if not f.filename.startswith(_PACKAGE) and not _is_plumbing(f.filename)]
    return [f"{f.filename}:{f.lineno} in {f.name}" for f in shown[-_MAX_FRAMES:]]


def _is_plumbing(filename: str) -> bool:
    return filename.startswith("<") or any(part in filename for part in ("/site-packages/", "/dist-packages/", _STDLIB))
