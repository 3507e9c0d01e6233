"""How an item says that its execution failed: exceptions that carry their text, and how pytest prints them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Protocol


class TrialFailure(Exception):
    """An execution that turns its item red. ``lines`` are safe to print, ``gist`` fits on one line."""

    def __init__(self, gist: str, lines: Sequence[str]) -> None:
        super().__init__(gist)
        self.gist = gist
        self.lines = list(lines)


class GradeMissed(TrialFailure):
    """The execution was scored, and its grade did not pass."""


class NotMeasured(TrialFailure):
    """The execution could not be measured."""


class _Writer(Protocol):
    def line(self, s: str = "", **markup: bool) -> None: ...


class TrialRepr:
    """What pytest prints for a failed item; ``reprcrash`` is where its short summary and JUnit look for the gist."""

    def __init__(self, gist: str, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self.reprcrash = SimpleNamespace(message=gist)

    def toterminal(self, tw: _Writer) -> None:
        """Write the details."""
        for line in self.lines:
            tw.line(line)

    def __str__(self) -> str:
        return "\n".join(self.lines)
