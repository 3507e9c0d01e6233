"""The clock of the engine: one thread that ends trials at their deadline and notices loops that are blocked.

While a coroutine blocks its loop, the clocks of the other trials on it stop. When the one that blocks has reached its
own deadline the loop is left behind: calls that had begun are lost and made again by their trials, calls that had not
are moved. Both go to loops of their own, where nobody can block them once more.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from time import monotonic

from pytest_hillclimb.engine.loop import LATE_S, AsyncCall, LoopThread

_TICK_S = 0.1
_WARN_AFTER_S = 1.0
_LEAVE_AFTER_S = 1.0  # between a blocker's deadline and leaving its loop: a loaded machine must not look like a block


class Loops:
    """The common loop, and loops for single calls; each made on first use."""

    def __init__(self, warn: Callable[[AsyncCall], None]) -> None:
        self.lost = 0
        self._warn = warn
        self._warned: set[AsyncCall] = set()
        self._lock = threading.Lock()
        self._common: LoopThread | None = None
        self._lone: list[LoopThread] = []

    def start(self, call: AsyncCall, *, alone: bool = False) -> None:
        """Start *call* on the common loop, or *alone* on a new one."""
        with self._lock:
            if alone:
                for idle in (known for known in self._lone if not known.calls and not known.abandoned):
                    idle.wind_up()
                self._lone = [known for known in self._lone if known.calls and not known.abandoned]
                loop = LoopThread("hillclimb-loop-of-one")
                self._lone.append(loop)
            else:
                if self._common is None:
                    self._common = LoopThread("hillclimb-loop")
                loop = self._common
            loop.submit(call)

    def busy(self) -> list[LoopThread]:
        """Return the loops that have calls."""
        common = [self._common] if self._common is not None else []
        return [loop for loop in (*common, *self._lone) if loop.calls and not loop.abandoned]

    def may_expire(self, call: AsyncCall, deadline: float, now: float) -> bool:
        """Return whether a call that is past its deadline has had its time.

        It has when its loop was seen to run after the deadline, or when the call itself blocks the loop. While another
        call blocks it, the clock of this one stands still.
        """
        loop = call.loop
        if loop is None or loop.abandoned or loop.seen_at >= deadline:
            return True
        if loop.lateness(now) <= LATE_S:
            return False
        return loop.blocker() in (None, call)

    def check(self, now: float) -> None:
        """Warn of loops that are blocked; leave those behind whose blocker is past its deadline."""
        for loop in self.busy():
            late = loop.lateness(now)
            if late <= LATE_S:
                continue
            blocker = loop.blocker()
            if late > _WARN_AFTER_S and blocker is not None and blocker not in self._warned:
                self._warned.add(blocker)
                self._warn(blocker)
            suspects = [blocker] if blocker is not None else list(loop.calls)
            if late > _LEAVE_AFTER_S and all(call.given_up for call in suspects):
                self._leave(loop)

    def close(self, patience: float) -> None:
        """Stop every loop, waiting *patience* seconds for the tasks of each to end."""
        common = [self._common] if self._common is not None else []
        loops = [loop for loop in (*common, *self._lone) if not loop.abandoned]
        for loop in loops:
            loop.wind_up()
        deadline = monotonic() + patience
        for loop in loops:
            loop.end(max(0.0, deadline - monotonic()))

    def _leave(self, loop: LoopThread) -> None:
        with self._lock:
            calls = loop.abandon()
            if loop is self._common:
                self._common = None
        for call in calls:
            if call.given_up or call.over:
                continue
            call.extend(monotonic() - call.submitted)
            if call.task is None:
                self.start(call, alone=True)
            elif call.lose():
                self.lost += 1


class Supervisor:
    """Calls back at given times, and ticks while ``busy`` says that there is something to look at."""

    def __init__(self, *, busy: Callable[[], bool], tick: Callable[[float], None]) -> None:
        self._busy = busy
        self._tick = tick
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self._ticking = False
        self._thread: threading.Thread | None = None

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Call *action* on the supervisor's thread at the monotonic time *when*."""
        with self._changed:
            heapq.heappush(self._due, (when, next(self._number), action))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="hillclimb-supervisor", daemon=True)
                self._thread.start()
            elif self._due[0][0] == when:
                self._changed.notify()

    def wake(self) -> None:
        """Let the supervisor look whether there is something to tick for."""
        if self._thread is None:
            self.at(monotonic(), lambda: None)
            return
        with self._changed:
            if not self._ticking:
                self._changed.notify()

    def close(self) -> None:
        """Stop for good."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_WARN_AFTER_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                self._ticking = self._busy()
                wait = self._due[0][0] - monotonic() if self._due else threading.TIMEOUT_MAX
                wait = min(wait, _TICK_S if self._ticking else threading.TIMEOUT_MAX)
                if wait > 0:
                    self._changed.wait(wait)
                due = self._take_due(monotonic())
            for action in due:
                action()
            if self._ticking:
                self._tick(monotonic())

    def _take_due(self, now: float) -> list[Callable[[], None]]:
        due = []
        while self._due and self._due[0][0] <= now:
            due.append(heapq.heappop(self._due)[2])
        return due
