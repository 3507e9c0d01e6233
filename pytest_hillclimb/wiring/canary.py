"""The canary: a few executions that are run first, so that a broken set-up costs no more than these."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.schedule.plan import Key


class Canary:
    """The first executions of a run that are not skipped.

    Where nothing can be held up, as with workers, others may end before these; then those that end first count too.

    :param count: how many, None for no canary
    :param positions: what is to be run, in its order, with its place in the session
    """

    def __init__(self, count: int | None, positions: Mapping[Key, int] | None = None) -> None:
        self._count = self._left = count or 0
        self._ahead = dict(positions or {})
        self._first = frozenset(islice(self._ahead, self._count))

    @property
    def over(self) -> bool:
        """Whether as many were measured as there should be."""
        return not self._left

    @property
    def until(self) -> int | None:
        """The place from which on nothing may be started yet, None when there is no such place."""
        last = next(islice(self._ahead.values(), self._left - 1, None), None) if self._left else None
        return None if last is None else last + 1

    def skip(self, key: Key) -> None:
        """Let the next execution take the place of one that is skipped."""
        self._ahead.pop(key, None)

    def judge(self, outcome: Outcome) -> str | None:
        """Take note of an outcome; return why the run must stop if a canary could not be measured."""
        self.skip(outcome.key)
        if outcome.kind not in (Kind.SCORED, Kind.FAILED) or (self.over and outcome.key not in self._first):
            return None
        self._left = max(0, self._left - 1)
        return self._reason(outcome.label, str(outcome.failure_class)) if outcome.kind is Kind.FAILED else None

    def never_begun(self, label: str) -> str | None:
        """Return why the run must stop as an execution has failed in a fixture, None if it was no canary."""
        return None if self.over else self._reason(label, "a fixture failed")

    def _reason(self, label: str, why: str) -> str:
        first = f"the first {self._count} executions" if self._count != 1 else "the first execution"
        return f"--hillclimb-canary: of {first}, {label} could not be measured ({why})"
