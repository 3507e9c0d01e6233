"""What a trial prints and logs, kept with the trial that said it.

A context variable names the trial of the running thread or task. Streams are not replaced but taught: ``write`` on a
stream object asks the variable, so that text lands with its trial whoever holds the stream. Threads that user code
starts on its own have no trial; what they say goes wherever the stream sends it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

_MAX_CHARS = 64 * 1024


class Output:
    """Text that one trial said, by stream; capped, and closed when the trial has ended."""

    __slots__ = ("closed", "parts", "sizes")

    def __init__(self) -> None:
        self.parts: dict[str, list[str]] = {}
        self.sizes: dict[str, int] = {}
        self.closed = False

    def add(self, stream: str, text: str) -> None:
        """Keep *text*; past the cap it is dropped, with one note that says so."""
        if self.closed:
            return
        size = self.sizes.get(stream, 0)
        if size < _MAX_CHARS:
            kept = text[: _MAX_CHARS - size]
            self.parts.setdefault(stream, []).append(kept if kept == text else kept + "\n[cut]\n")
        self.sizes[stream] = size + len(text)

    def take(self) -> dict[str, str]:
        """Return what was said, by stream, and keep nothing more."""
        self.closed = True
        said = {stream: "".join(parts) for stream, parts in self.parts.items()}
        self.parts = {}
        return said


CURRENT: ContextVar[Output | None] = ContextVar("hillclimb_output", default=None)


class StreamRouter:
    """Teaches stream objects to hand what a trial writes to the trial.

    :param redact: takes the secrets out of what belongs to no trial
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._taught: list[Any] = []

    def adopt(self, stream: Any, name: str) -> None:
        """Route *stream* from now on; a stream that was adopted before is left alone."""
        if any(known is stream for known, _ in self._taught):
            return
        original = stream.write

        def write(text: str) -> int:
            output = CURRENT.get()
            if output is None:
                original(self._redact(text))
            else:
                output.add(name, text)
            return len(text)

        try:
            stream.write = write
        except AttributeError:  # a stream without attributes of its own cannot be taught
            return
        self._taught.append((stream, write))

    def release(self) -> None:
        """Give every stream its own ``write`` back."""
        while self._taught:
            stream, write = self._taught.pop()
            if stream.__dict__.get("write") is write:
                del stream.write


class LogRouter(logging.Handler):
    """Keeps the log records of trials with their trial, and takes the secrets out of all records for later handlers.

    :param redact: takes the secrets out of a text
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        """Clean a record, and keep it if a trial made it."""
        output = CURRENT.get()
        try:
            self._clean(record)
            if output is not None:
                output.add("log", self.format(record) + "\n")
        except Exception:
            self.handleError(record)

    def _clean(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if (clean := self._redact(message)) != message:
            record.msg, record.args = clean, None
        if record.exc_info and record.exc_info[0] is not None:
            text = logging.Formatter().formatException(record.exc_info)
            if (clean := self._redact(text)) != text:
                record.exc_text = clean  # which every formatter prints in place of the traceback itself


def not_from_a_trial(record: logging.LogRecord) -> bool:
    """Log filter for handlers that collect the records of pytest's item in front."""
    return CURRENT.get() is None


def outside_of_trials(emit: Callable[[logging.LogRecord], None]) -> Callable[[logging.LogRecord], None]:
    """Return *emit* such that what it writes to a stream stays there, whichever trial the record is of."""

    def outside(record: logging.LogRecord) -> None:
        token = CURRENT.set(None)
        try:
            emit(record)
        finally:
            CURRENT.reset(token)

    return outside
