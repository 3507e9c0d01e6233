"""Making text from models, catalogs and exceptions safe to print: it must not steer a terminal or forge its lines."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNPRINTABLE = re.compile(r"[\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_BREAKS = re.compile(r"\r\n|[\r\n]")

MARGIN = "| "


def one_line(text: object, limit: int | None = None) -> str:
    """Return *text* on one line, without escape sequences and control characters, cut to *limit* characters."""
    clean = _UNPRINTABLE.sub("\ufffd", _CONTROLS.sub("", _BREAKS.sub(" ", _ESCAPES.sub("", str(text)))))
    return clean if limit is None or len(clean) <= limit else clean[: limit - 3] + "..."


def block(text: object, *, lines: int = 12, width: int = 200) -> list[str]:
    """Return *text* as safe lines, each behind a margin so that none can pass for a line of the report itself."""
    parts = _BREAKS.split(str(text))
    shown = [MARGIN + one_line(part[: width * 2].expandtabs(4), width) for part in parts[:lines]]
    left = len(parts) - lines
    return [*shown, f"{MARGIN}... ({left} more lines)"] if left > 0 else shown


def multiline(text: str) -> str:
    """Return captured output as safe lines, line breaks kept."""
    return "\n".join(one_line(part.expandtabs(8)) for part in _BREAKS.split(text))


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 case`` or ``3 cases``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
