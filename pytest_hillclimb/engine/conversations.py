"""The transcript of an attempt that made several calls: the turns of all of them, each once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_hillclimb.model.run import Turn


@dataclass(frozen=True, slots=True)
class Spoken:
    """The turns of one call: those of its request, those of its answer, and whether the answer came to its end.

    ``id`` names the answer. A request that ``continues`` an answer leaves out what was said until then.
    """

    asked: Sequence[Turn]
    answered: Sequence[Turn]
    whole: bool = True
    id: str | None = None
    continues: str | None = None


def merged(calls: Iterable[Spoken]) -> list[Turn]:
    """Return the turns of all calls, each once.

    A call whose request repeats what was said so far, as every call of a conversation does, or names the answer that it
    continues, continues it; a call made again because its answer had broken off replaces it; any other call begins a
    conversation of its own.
    """
    conversations: list[_Conversation] = []
    until: dict[str, list[Turn]] = {}
    for call in calls:
        if call.continues in until:
            call = replace(call, asked=[*until[call.continues], *call.asked])
        if call.id is not None:
            until[call.id] = [*call.asked, *call.answered]
        asked = _keys(call.asked)
        going_on = next((each for each in reversed(conversations) if each.is_repeated_by(asked)), None)
        if going_on is None:
            going_on = _Conversation()
            conversations.append(going_on)
        going_on.add(call, asked)
    return [turn for each in conversations for turn in each.turns]


@dataclass(frozen=True, slots=True)
class _Key:
    """What identifies a turn when a request repeats it, perhaps without its thinking, and its JSON in another order.

    Results that came in an answer (``by_api``) may be repeated without some of their fields.
    """

    role: str
    content: Any
    by_api: bool = False

    def is_repeated_by(self, other: _Key) -> bool:
        if self.role != other.role:
            return False
        return self.content == other.content or (self.by_api and _agree(self.content, other.content))


class _Conversation:
    """One conversation. Its system turns stand where they took effect; they are no part of what requests repeat."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._system: list[Turn] = []
        self._said: list[_Key] = []
        self._broken = 0
        """How many of the turns are of an answer that has broken off, so they do not stand."""

    def is_repeated_by(self, asked: Sequence[_Key]) -> bool:
        """Return whether a request repeats what was said here."""
        said = self._firm()
        return len(said) <= len(asked) and all(map(_Key.is_repeated_by, said, asked))

    def add(self, call: Spoken, asked: Sequence[_Key]) -> None:
        """Add what *call*, whose request has the keys *asked*, has new."""
        firm = self._firm()
        if self._broken:
            del self.turns[-self._broken :]
        system = [turn for turn in call.asked if turn.role == "system"]
        if system != self._system:
            self.turns += system
            self._system = system
        self.turns += [turn for turn in call.asked if turn.role != "system"][len(firm) :]
        self.turns += call.answered
        answered = _keys(call.answered, by_api=True)
        self._said = [*asked, *answered]
        self._broken = 0 if call.whole else len(answered)

    def _firm(self) -> list[_Key]:
        """Return what stands."""
        return self._said[: len(self._said) - self._broken]


def _keys(turns: Sequence[Turn], *, by_api: bool = False) -> list[_Key]:
    return [
        _Key(turn.role, _comparable(turn), by_api and turn.role == "tool_result")
        for turn in turns
        if turn.role != "system"
    ]


def _comparable(turn: Turn) -> Any:
    if not isinstance(turn.content, str):
        return turn.content
    text = turn.content.strip()
    if not turn.role.startswith("tool_") or not text.startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _agree(one: Any, other: Any) -> bool:
    """Return whether one of two results has all that the other has; null is as good as nothing."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        first, second = ({key for key, value in each.items() if value is not None} for each in (one, other))
        shared = first & second
        return shared in (first, second) and all(_agree(one[key], other[key]) for key in shared)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_agree, one, other))
    return bool(one == other)
