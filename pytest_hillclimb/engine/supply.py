"""Which trial may be started next: the order, and all that can hold it up.

Scope: no locks of its own; the engine serialises.
"""

from __future__ import annotations

from collections import deque
from time import monotonic

from pytest_hillclimb.engine.ledger import Ledger
from pytest_hillclimb.engine.trial import Trial


class Supply:
    """Queued trials in the order in which they were added, and those that are needed at once.

    :param ledger: the campaign's account, None without a ceiling
    """

    def __init__(self, ledger: Ledger | None) -> None:
        self.stopping = False
        """Whether nothing more may be started at all."""
        self._ledger = ledger
        self._pending: deque[Trial] = deque()
        self._urgent: deque[Trial] = deque()
        self._until: int | None = None
        self._held = False
        self._paused_until = 0.0
        self._dearest_judging = 0.0

    def __len__(self) -> int:
        return len(self._pending) + len(self._urgent)

    def add(self, trial: Trial) -> None:
        """Queue a trial."""
        trial.queued = True
        self._pending.append(trial)

    def need(self, trial: Trial) -> None:
        """Put *trial*, unless it was taken before, ahead of all that is queued, also while starting is held."""
        if trial.taken or trial in self._urgent:
            return
        if trial.queued:
            self._pending.remove(trial)
            trial.queued = False
        self._urgent.append(trial)

    def allow(self, until: int | None) -> None:
        """Hand out no queued trial whose position is *until* or later; None lifts that."""
        self._until = until

    def hold(self) -> None:
        """Hand out nothing that is queued."""
        self._held = True

    def stop(self) -> None:
        """Hand out nothing more at all."""
        self._held = self.stopping = True

    def pause(self, until: float) -> bool:
        """Hand out nothing before the monotonic time *until*; return whether that is later than what was known."""
        later = until > self._paused_until
        self._paused_until = max(until, self._paused_until)
        return later

    def pause_left(self) -> float | None:
        """Return the seconds for which a pause still lasts, None when there is none."""
        left = self._paused_until - monotonic()
        return left if left > 0 else None

    def take(self) -> Trial | None:
        """Return the trial to start now, its worst case reserved; None while there is none.

        One that the ledger will never admit is given out too, marked as withheld.
        """
        trial = self._choose()
        if trial is None or not self._admits(trial):
            return None
        (self._urgent if self._urgent else self._pending).popleft()
        trial.queued, trial.taken = False, True
        return trial

    def spare(self, trial: Trial, spent: float) -> None:
        """Set only what it has spent aside for a trial between two tries: nothing of it is running."""
        if self._ledger is not None:
            self._ledger.lower_to(trial.execution.key, spent)

    def affords(self, trial: Trial, usd: float) -> bool:
        """Set *usd* aside for a trial in flight, in place of what was; return False when there is not as much left."""
        return self._ledger is None or self._ledger.raise_to(trial.execution.key, usd + self._dearest_judging)

    def settle(self, trial: Trial) -> None:
        """Charge what a trial has cost, in place of what was reserved for it."""
        if self._ledger is not None and trial.withheld is None:
            charged = trial.outcome.charged if trial.outcome is not None else trial.reserved
            self._ledger.settle(trial.execution.key, charged or 0.0)
            if trial.outcome is not None:
                self._dearest_judging = max(self._dearest_judging, trial.outcome.judged)

    def _choose(self) -> Trial | None:
        if self.stopping or self.pause_left() is not None:
            return None
        if self._urgent:
            return self._urgent[0]
        if self._held or not self._pending:
            return None
        first = self._pending[0]
        return None if self._until is not None and first.position >= self._until else first

    def _admits(self, trial: Trial) -> bool:
        # What a judge may cost nobody has stated: as much as the dearest so far.
        ledger, amount = self._ledger, (trial.reserved or 0.0) + self._dearest_judging
        if ledger is None or ledger.reserve(trial.execution.key, amount):
            return True
        if ledger.in_flight:  # which may turn out to cost less than was reserved for it
            return False
        trial.withheld = (
            f"cost ceiling: {ledger.spent:.4f} of {ledger.ceiling:g} USD{ledger.whose} are spent, "
            f"and this execution may cost {amount:g}"
        )
        return True
