"""Which trials are started ahead of the item in front, and how far.

Trials of a file of cases are started once its first item's set-up has passed, for the items that follow one another in
that file, so that the fixtures around them stand. What pytest would skip is never started ahead. Under ``-x``,
``--maxfail`` and ``--stepwise`` no trial is started further ahead than the concurrency; a canary holds back all that is
behind it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pytest

from pytest_hillclimb.engine.engine import Engine
from pytest_hillclimb.engine.outcome import Outcome
from pytest_hillclimb.engine.trial import Trial
from pytest_hillclimb.schedule.plan import Key
from pytest_hillclimb.wiring.canary import Canary
from pytest_hillclimb.wiring.collect import CaseFile, TrialItem
from pytest_hillclimb.wiring.run import EvalRun
from pytest_hillclimb.wiring.trials import TrialMaker


class RunAhead:
    """Makes the trials of a session and queues them with the engine.

    :param run: the run, which knows what is recorded and who is qualified
    :param maker: makes trials of items
    :param engine: carries them out
    :param items: all items of the session, in their order
    :param to_run: the executions that are to be run, in their order, with the place of their item
    :param narrow: whether nothing may be started further ahead than the concurrency
    """

    def __init__(
        self,
        run: EvalRun,
        maker: TrialMaker,
        engine: Engine,
        *,
        items: Sequence[pytest.Item],
        to_run: Mapping[Key, int],
        narrow: bool,
    ) -> None:
        self._run = run
        self._maker = maker
        self._engine = engine
        self._items = items
        self._narrow = narrow
        self._trials: dict[Key, Trial] = {}
        self._opened_until = -1
        self._lock = threading.Lock()
        self._canary = Canary(run.settings.canary, to_run)
        self._widen()

    def trial(self, item: TrialItem) -> Trial:
        """Return the one trial of an item's execution, which no second item or rerun pays for again."""
        key = item.execution.key
        if key not in self._trials:
            self._trials[key] = self._maker.make(item, self._engine)
        return self._trials[key]

    def reach(self, item: TrialItem) -> None:
        """Have the trial of the item in front started, and let those that follow it be started too."""
        if self._narrow:
            self._widen(item.position)
        self._engine.need(self.trial(item))
        self._open_stretch(item)

    def skip(self, key: Key) -> None:
        """Note that an execution is skipped, which passes the turn of a canary on."""
        with self._lock:
            self._canary.skip(key)
        self._widen()

    def judge(self, outcome: Outcome) -> str | None:
        """Take note of an outcome; return why the run must stop if a canary could not be measured."""
        with self._lock:
            if self._canary.over:
                return self._canary.judge(outcome)
            reason = self._canary.judge(outcome)
        if reason is None:
            self._widen()
        return reason

    def never_begun(self, label: str) -> str | None:
        """Return why the run must stop as an execution has failed in a fixture, None if it was no canary."""
        return self._canary.never_begun(label)

    def _widen(self, front: int | None = None) -> None:
        """Let queued trials be started as far ahead as the canary lets them, and from *front* the concurrency."""
        if self._narrow and front is None:
            return
        ahead = None if front is None else front + self._run.settings.concurrency
        with self._lock:
            limits = [limit for limit in (ahead, self._canary.until) if limit is not None]
            self._engine.allow(min(limits, default=None))

    def _open_stretch(self, item: TrialItem) -> None:
        """Queue the trials of the items that follow in the same file, up to the next item of another."""
        if item.position < self._opened_until:
            return
        home = item.getparent(CaseFile)
        stretch: list[Trial] = []
        position = item.position
        for following in self._items[position:]:
            if not isinstance(following, TrialItem) or following.getparent(CaseFile) is not home:
                break
            position += 1
            if self._may_run(following):
                following.trial = self.trial(following)
                stretch.append(following.trial)
        self._opened_until = position
        self._engine.add(stretch)

    def _may_run(self, item: TrialItem) -> bool:
        execution = item.execution
        if execution.key in self._trials or execution.key in self._run.recorded.rows:
            return False
        if self._run.campaign.refusal(execution.candidate) is not None:
            return False
        marks = [mark for name in ("skip", "skipif", "xfail") for mark in item.iter_markers(name)]
        return not any(mark.name != "xfail" or mark.kwargs.get("run") is False for mark in marks)
