"""The engine: lanes that carry out trials, the loop for coroutines, and the supervisor that keeps time over both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextvars import Context as VariableContext
from time import monotonic

from pytest_hillclimb.engine.ledger import Ledger
from pytest_hillclimb.engine.loop import AsyncCall
from pytest_hillclimb.engine.supervisor import Loops, Supervisor
from pytest_hillclimb.engine.supply import Supply
from pytest_hillclimb.engine.trial import Trial

_COUNT_AFTER_S = 1.0  # a call that has not ended this long after its trial counts as abandoned
_CLOSE_PATIENCE_S = 1.0
_HURRIED_PATIENCE_S = 0.1
_ASK_AGAIN_S = 0.02
_NOTICED_PAUSE_S = 2.0


class _Lane(threading.Thread):
    """A daemon thread that carries out one trial after another. It is lost when a call of user code does not return."""

    def __init__(self, engine: Engine, number: int) -> None:
        super().__init__(name=f"hillclimb-lane-{number}", daemon=True)
        self.trial: Trial | None = None
        self.lost = False
        self._engine = engine

    def run(self) -> None:
        while (trial := self._engine._next(self)) is not None:
            self.trial = trial
            VariableContext().run(trial.carry_out)
            self.trial = None
            self._engine.pace()


class Engine:
    """Runs trials, *width* at a time, in the order in which they were added.

    :param width: how many trials may be in flight
    :param on_end: called with each trial that has ended, from whichever thread ended it
    :param warn: called with one line about user code that holds everyone up
    :param notice: called with one line about a wait that concerns every trial
    :param on_pause: told of the seconds for which a server has asked to start nothing
    :param ledger: the account of a campaign with a cost ceiling
    :param pace: called by a lane between two trials; may wait, so that lanes do not outrun who takes their outcomes
    """

    def __init__(
        self,
        width: int,
        *,
        on_end: Callable[[Trial], None],
        warn: Callable[[str], None],
        notice: Callable[[str], None] = lambda _: None,
        on_pause: Callable[[float], None] = lambda _: None,
        ledger: Ledger | None = None,
        pace: Callable[[], None] = lambda: None,
    ) -> None:
        self.pace = pace
        self._width = width
        self._on_end = on_end
        self._warn = warn
        self._notice = notice
        self._on_pause = on_pause
        lock = threading.Lock()
        self._changed = threading.Condition(lock)  # there may be something to start
        self._quiet = threading.Condition(lock)  # nothing is in flight
        self._supply = Supply(ledger)
        self._lanes: list[_Lane] = []
        self._made = 0
        self._idle = 0
        self._in_flight: dict[Trial, _Lane] = {}
        self._short = 0
        self._expired: dict[Trial, Callable[[], bool]] = {}
        self._left_behind: list[Trial] = []
        self._timed_out: list[Trial] = []
        self._loops = Loops(self._warn_of)
        self._supervisor = Supervisor(busy=lambda: bool(self._loops.busy()), tick=self._loops.check)

    @property
    def abandoned(self) -> int:
        """How many calls of user code did not end with their trial, or were lost with a blocked loop."""
        return len(self._left_behind) + self._loops.lost

    @property
    def left_calls(self) -> bool:
        """Whether any trial ended before its calls of user code were known to have ended."""
        return bool(self._timed_out)

    def add(self, trials: Iterable[Trial]) -> None:
        """Queue trials, to be started as lanes become free."""
        with self._changed:
            for trial in trials:
                self._supply.add(trial)
            self._man_lanes()

    def need(self, trial: Trial) -> None:
        """Start *trial*, unless it was started before, ahead of all that is queued and also while starting is held."""
        with self._changed:
            self._supply.need(trial)
            self._man_lanes()

    def allow(self, until: int | None) -> None:
        """Start no queued trial whose position is *until* or later; None lifts that."""
        with self._changed:
            self._supply.allow(until)
            self._man_lanes()

    def hold(self) -> None:
        """Start nothing that is queued."""
        with self._changed:
            self._supply.hold()

    def stop(self) -> None:
        """Start nothing more at all, retries included, and cut short the waits for retries."""
        with self._changed:
            self._supply.stop()
            waiting = [trial for trial in self._in_flight if trial.pausing]
        for trial in waiting:
            trial.cut_short()

    def wait_idle(self, seconds: float) -> bool:
        """Wait at most *seconds* until nothing is in flight; return whether that came true."""
        with self._changed:
            return self._quiet.wait_for(lambda: not self._in_flight, seconds)

    def close(self, *, hurried: bool = False) -> None:
        """Stop the loops and the supervisor; what does not end (at once, if *hurried*) is left behind."""
        self.stop()
        with self._changed:
            unfinished = dict(self._in_flight)
            for lane in self._lanes:
                lane.lost = True
            self._changed.notify_all()
        for trial, lane in unfinished.items():
            call = trial.waiting
            if trial.interrupt():
                self._timed_out.append(trial)
                self._expired[trial] = _still_running(trial, lane, call)
            trial.give_up()
        self._supervisor.close()
        self._loops.close(_HURRIED_PATIENCE_S if hurried else _CLOSE_PATIENCE_S)
        for trial in list(self._expired):
            self._count(trial)
        for trial in self._timed_out:
            trial.clean_up()
        self.wait_idle(_CLOSE_PATIENCE_S)

    # --- what trials need (trial.Services) ----------------------------------------------------------------------------

    def watch(self, trial: Trial) -> None:
        """Call ``trial.expire`` when its deadline passes."""
        self._supervisor.at(trial.deadline, lambda: self._expire(trial))

    def start_call(self, call: AsyncCall, *, alone: bool) -> None:
        """Start a coroutine on the common loop, or on a loop of its own."""
        self._loops.start(call, alone=alone)
        self._supervisor.wake()

    def stopping(self) -> bool:
        """Return whether nothing more may be started, retries included."""
        return self._supply.stopping

    def pause(self, seconds: float, label: str) -> None:
        """Start nothing for *seconds*, as a server has asked the trial called *label* to wait."""
        with self._changed:
            later = self._supply.pause(monotonic() + seconds)
        if later:
            self._on_pause(seconds)
        if later and seconds >= _NOTICED_PAUSE_S:
            self._notice(f"{label}: the server asks to wait {seconds:.0f} s; nothing new is started until then")

    def affords(self, trial: Trial, spent: float, usd: float) -> bool:
        """Set *usd* aside for *trial*, which has *spent* so far; return False when a ceiling has not as much left.

        As long as others are in flight, which may turn out to cost less than was set aside for them, it is waited for;
        when all of them wait for that, nobody will give anything back.
        """
        with self._changed:
            if trial.ended:
                return False
            self._supply.spare(trial, spent)
            self._changed.notify_all()
            self._short += 1
            try:
                while not (self._supply.stopping or trial.ended):
                    if self._supply.affords(trial, usd):
                        return True
                    if self._short >= len(self._in_flight):
                        return False
                    self._changed.wait(_ASK_AGAIN_S)
                return False
            finally:
                self._short -= 1

    def ended(self, trial: Trial) -> None:
        """Take note that *trial* has its outcome; it is in flight until everybody has been told."""
        self._on_end(trial)
        with self._changed:
            self._in_flight.pop(trial, None)
            self._supply.settle(trial)
            if self._supply:
                self._changed.notify(self._idle)  # what was reserved may be enough for several that wait
            if not self._in_flight:
                self._quiet.notify_all()

    # --- lanes --------------------------------------------------------------------------------------------------------

    def _next(self, lane: _Lane) -> Trial | None:
        with self._changed:
            while True:
                if lane.lost:
                    return None
                pause = self._supply.pause_left()  # before it may end: nobody tells of that
                if (trial := self._supply.take()) is not None:
                    self._in_flight[trial] = lane
                    return trial
                self._idle += 1
                self._changed.wait(pause)
                self._idle -= 1

    def _man_lanes(self) -> None:
        wanted = min(self._width, len(self._lanes) - self._idle + len(self._supply))
        while len(self._lanes) < wanted:
            self._made += 1
            lane = _Lane(self, self._made)
            self._lanes.append(lane)
            lane.start()
        self._changed.notify(min(self._idle, self._width))

    def _replace(self, lane: _Lane) -> None:
        with self._changed:
            if lane.lost:
                return
            lane.lost = True
            self._lanes.remove(lane)
            self._man_lanes()

    # --- deadlines ----------------------------------------------------------------------------------------------------

    def _expire(self, trial: Trial) -> None:
        now = monotonic()
        if trial.ended:
            return
        call = trial.waiting
        if now < trial.deadline:
            self.watch(trial)
            return
        if call is not None and not self._loops.may_expire(call, trial.deadline, now):
            self._supervisor.at(now + _ASK_AGAIN_S, lambda: self._expire(trial))
            return
        lane = self._in_flight.get(trial)
        if lane is None:
            return
        if not trial.expire():
            return
        self._timed_out.append(trial)
        if call is None and not trial.pausing:
            self._replace(lane)
        trial.give_up()
        if call is not None and call.loop is not None:
            call.loop.cancel(call)
        self._expired[trial] = _still_running(trial, lane, call)
        self._supervisor.at(now + _COUNT_AFTER_S, lambda: self._count(trial))

    def _count(self, trial: Trial) -> None:
        still_running = self._expired.pop(trial, None)
        if still_running is not None and still_running():
            self._left_behind.append(trial)

    def _warn_of(self, call: AsyncCall) -> None:
        self._warn(
            f"{call.label}: blocks the event loop for over 1 s; other cases wait for it (use a plain def instead)"
        )


def _still_running(trial: Trial, lane: _Lane, call: AsyncCall | None) -> Callable[[], bool]:
    if call is not None:
        return lambda: not call.over
    return lambda: lane.trial is trial
