"""Append-only JSON lines: one row per line, one write per row.

Pattern: the file is opened for appending through the safe directory and kept open. A row goes out in a single write, so
a crash leaves whole rows and at most one torn line at the end. Whoever opens the file next closes that line with a
newline before adding anything. A write that fails is cut off again.

Accepted trade-offs: a row is safe from a crash of the process at once, from a power cut only after ``sync``; a torn
line stays in the file for good, as a line that readers skip.

Scope: one writer at a time (see ``lock``), which may use it from one thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pytest_hillclimb.errors import UnsafePathError, WriteError
from pytest_hillclimb.flow.document import decode
from pytest_hillclimb.flow.safe import SafeDir, write_all


class Journal:
    """A JSON-lines file open for appending; it comes into being with the first row.

    :param directory: where the file lies
    :param name: its name
    :raises WriteError: if the file exists and cannot be opened, or its torn last line cannot be closed
    """

    def __init__(self, directory: SafeDir, name: str) -> None:
        self._directory = directory
        self._name = name
        self._fd: int | None = None
        with self._failing():
            if directory.exists(name):
                self._fd = self._open()

    def append(self, line: str | bytes) -> None:
        """Write one row.

        :param line: JSON text without a newline
        :raises WriteError: if it could not be written whole; the file is then as long as it was before
        """
        data = (line.encode() if isinstance(line, str) else line) + b"\n"
        if data.count(b"\n") != 1:
            raise ValueError("a row must be a single line")
        with self._failing():
            fd, length = self._ready()
            try:
                write_all(fd, data)
            except OSError:
                self._cut(fd, length)
                raise

    def sync(self) -> None:
        """Wait until the disk has every row.

        :raises WriteError: if the disk reports a failure
        """
        if self._fd is not None:
            with self._failing():
                os.fsync(self._fd)

    def close(self) -> None:
        """Close the file; a later append opens it again."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _ready(self) -> tuple[int, int]:
        """Return the descriptor to write to, and the length of the file."""
        if self._fd is not None:
            status = os.fstat(self._fd)
            if status.st_nlink == 1:
                return self._fd, status.st_size
            # Deleted, or linked from elsewhere, since it was opened.
            self.close()
        self._fd = self._open()
        return self._fd, os.fstat(self._fd).st_size

    def _open(self) -> int:
        fd = self._directory.open_file(self._name, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            length = os.fstat(fd).st_size
            if length and os.pread(fd, 1, length - 1) != b"\n":
                write_all(fd, b"\n")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _cut(self, fd: int, length: int) -> None:
        try:
            os.ftruncate(fd, length)
        except OSError:
            # Opening the file again closes the torn line, if the disk takes a byte by then.
            self.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        shown = self._directory.path_of(self._name)
        try:
            yield
        except OSError as error:
            raise WriteError(f"cannot write {shown}: {error.strerror or error}", path=shown) from error
        except UnsafePathError as error:
            raise WriteError(f"cannot write {shown}: {error.message}", path=shown) from error


class Line(NamedTuple):
    """A row of a journal and the place of its line in the file."""

    offset: int
    length: int
    row: dict[str, Any]


class Scan:
    """The rows of a journal; lines that hold no JSON object are skipped.

    :param lines: the lines with their newlines: a file opened for reading bytes, which is read as the rows are taken
    """

    broken: int
    """How many lines that are neither blank nor a JSON object were met so far."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.broken = 0

    def __iter__(self) -> Iterator[Line]:
        offset = 0
        for line in self._lines:
            try:
                row = decode(line.decode())
            except (ValueError, RecursionError):
                row = None
            if isinstance(row, dict):
                yield Line(offset, len(line), row)
            elif not line.isspace():
                self.broken += 1
            offset += len(line)
