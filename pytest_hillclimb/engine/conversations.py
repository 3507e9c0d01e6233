"""The transcript of an attempt that made several calls: the turns of all of them, each once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_hillclimb.model.run import Turn


@dataclass(frozen=True, slots=True)
class Spoken:
    """The turns of one call: those of its request, those of its answer, and whether the answer came to its end."""

    asked: Sequence[Turn]
    answered: Sequence[Turn]
    whole: bool = True


def merged(calls: Iterable[Spoken]) -> list[Turn]:
    """Return the turns of all calls, each once.

    A call whose request repeats what was said so far, as every call of a conversation does, continues it; a call made
    again because its answer had broken off replaces it; any other call begins a conversation of its own.
    """
    conversations: list[_Conversation] = []
    for call in calls:
        going_on = next((each for each in reversed(conversations) if each.is_continued_by(call)), None)
        if going_on is None:
            going_on = _Conversation()
            conversations.append(going_on)
        going_on.add(call)
    return [turn for each in conversations for turn in each.turns]


class _Conversation:
    """One conversation. Its system turns stand where they took effect; they are no part of what requests repeat."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._system: list[Turn] = []
        self._said: list[tuple[str, Any]] = []
        self._last: Spoken | None = None

    def is_continued_by(self, call: Spoken) -> bool:
        """Return whether the request of *call* repeats what was said here."""
        said = self._firm()
        return said == _keys(call.asked)[: len(said)]

    def add(self, call: Spoken) -> None:
        """Add what *call* has new."""
        firm = self._firm()
        if lost := len(self._said) - len(firm):
            del self.turns[-lost:]
        system = [turn for turn in call.asked if turn.role == "system"]
        if system != self._system:
            self.turns += system
            self._system = system
        self.turns += [turn for turn in call.asked if turn.role != "system"][len(firm) :]
        self.turns += call.answered
        self._said = _keys(call.asked) + _keys(call.answered)
        self._last = call

    def _firm(self) -> list[tuple[str, Any]]:
        """Return what stands, which an answer that has broken off does not."""
        if self._last is None or self._last.whole:
            return self._said
        return self._said[: len(self._said) - len(_keys(self._last.answered))]


def _keys(turns: Sequence[Turn]) -> list[tuple[str, Any]]:
    """Return what identifies turns when a request repeats them, perhaps without their thinking."""
    return [
        (turn.role, turn.content.strip() if isinstance(turn.content, str) else turn.content)
        for turn in turns
        if turn.role != "system"
    ]
