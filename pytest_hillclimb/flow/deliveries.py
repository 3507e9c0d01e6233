"""Which outcomes a session has taken, so that one that is delivered twice counts once.

Pattern: for each execution the digests of the rows that were taken for it. A delivery with the same content is a
repetition and of no account. One with other content is a conflict, unless it may follow what is there: a score may
follow a failure, and anything may follow the loss of a worker, whose execution is tried again.

Scope: one session; rows of earlier ones are the business of ``recorded``. One thread at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b

from pytest_hillclimb.engine.ends import WorkerLost
from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.schedule.plan import Key


class Delivery(Enum):
    """What a delivered outcome is to the session."""

    NEW = "new"
    REPEATED = "repeated"
    CONFLICTING = "conflicting"


@dataclass(slots=True)
class _Taken:
    """The last outcome that was taken for an execution, and the digests of all that were."""

    kind: Kind
    failure_class: str | None
    digests: tuple[bytes, ...]

    def may_be_followed_by(self, kind: Kind) -> bool:
        if self.failure_class == WorkerLost.failure_class:
            return True
        return self.kind is not Kind.SCORED and kind is Kind.SCORED


class Deliveries:
    """The outcomes of a session, by execution."""

    def __init__(self) -> None:
        self.repeated = 0
        """How many deliveries had content that was taken before."""
        self.conflicting = 0
        """How many deliveries had other content than what was taken before, and were refused."""
        self._taken: dict[Key, _Taken] = {}

    def take(self, outcome: Outcome, line: bytes) -> Delivery:
        """Take *outcome*, unless its execution has one already.

        :param line: its row as text, empty when it has none
        """
        earlier, digest = self._taken.get(outcome.key), _digest(line)
        if earlier is not None and digest in earlier.digests:
            self.repeated += 1
            return Delivery.REPEATED
        if earlier is not None and not earlier.may_be_followed_by(outcome.kind):
            self.conflicting += 1
            return Delivery.CONFLICTING
        digests = earlier.digests if earlier is not None else ()
        self._taken[outcome.key] = _Taken(outcome.kind, outcome.failure_class, (*digests, digest))
        return Delivery.NEW

    def amend(self, outcome: Outcome, line: bytes) -> None:
        """Note that the row of an outcome that was taken has become *line*."""
        self._taken[outcome.key].digests += (_digest(line),)


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()
