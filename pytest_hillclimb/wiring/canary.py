"""The canary: a few executions that are run first, so that a broken set-up costs no more than these."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.schedule.plan import Key


class Canary:
    """The first executions of a run.

    :param count: how many, None for no canary
    :param keys: what is to be run, in its order
    """

    def __init__(self, count: int | None, keys: Iterable[Key] = ()) -> None:
        self._count = count
        self._awaited = set(list(keys)[:count]) if count is not None else set()

    def __contains__(self, key: Key) -> bool:
        return key in self._awaited

    @property
    def over(self) -> bool:
        """Whether all of them have ended, or are no longer waited for."""
        return not self._awaited

    def give_up(self) -> None:
        """Wait for none of them any more: what is left was never started."""
        self._awaited.clear()

    def judge(self, outcome: Outcome) -> str | None:
        """Take note of an outcome; return why the run must stop if a canary could not be measured."""
        if outcome.key not in self._awaited:
            return None
        self._awaited.discard(outcome.key)
        if outcome.kind is not Kind.FAILED:
            return None
        first = f"the first {self._count} executions" if self._count != 1 else "the first execution"
        return f"--hillclimb-canary: of {first}, {outcome.label} could not be measured ({outcome.failure_class})"
