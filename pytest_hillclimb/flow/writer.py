"""Brings outcomes to the recorder in time, whatever the main thread is doing.

Pattern: one thread records, so that an interrupt of the main thread can never fall between a trial and its row. It
works when somebody waits for a row, when many are queued, and otherwise every few hundredths of a second: while the
main thread computes, each system call of another thread costs a wait for the interpreter. The same thread syncs the
rows once a second and keeps the progress line current.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from pytest_hillclimb.engine.outcome import Outcome
from pytest_hillclimb.errors import WriteError
from pytest_hillclimb.flow.recorder import Recorder

_LOOK_EVERY_S = 0.03
_SYNC_EVERY_S = 1.0
_PROGRESS_EVERY_S = 30.0
_ROOM = 64  # queued outcomes beyond which lanes wait: memory must not grow with transcripts


class Writer:
    """A queue of outcomes before a recorder.

    :param recorder: where outcomes are written
    :param on_recorded: called with each outcome once it is on disk; not again for one that is delivered twice
    :param on_failure: called once, with the reason, when the disk does not take a row
    :param on_progress: called every 30 seconds
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        on_recorded: Callable[[Outcome], None],
        on_failure: Callable[[str], None],
        on_progress: Callable[[], None],
    ) -> None:
        self._recorder = recorder
        self._on_recorded = on_recorded
        self._on_failure = on_failure
        self._on_progress = on_progress
        self._queue: deque[Outcome] = deque()
        self._work = threading.Event()
        self._recorded = threading.Condition()
        self._room = threading.Condition()
        self._waiting = 0
        self._closing = False
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="hillclimb-writer", daemon=True)
        self._thread.start()

    def put(self, outcome: Outcome) -> None:
        """Queue an outcome; one that comes after the end is recorded at once."""
        self._queue.append(outcome)
        if not self._thread.is_alive():
            self._record_all()
        if self._waiting:
            self._work.set()

    def wait_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait at most *seconds* for *done* to come true, which is asked whenever something was recorded."""
        self._waiting += 1
        try:
            if self._queue:
                self._work.set()
            with self._recorded:
                return self._recorded.wait_for(done, seconds)
        finally:
            self._waiting -= 1

    def wait_for_room(self) -> None:
        """Wait while too much is queued."""
        if len(self._queue) >= _ROOM:
            self._work.set()
            with self._room:
                self._room.wait_for(lambda: len(self._queue) < _ROOM or not self._thread.is_alive(), _SYNC_EVERY_S)

    def close(self) -> None:
        """Record what is queued and bring everything to disk."""
        self._closing = True
        self._work.set()
        self._thread.join()

    def _run(self) -> None:
        synced = told = monotonic()
        while not self._closing:
            self._work.wait(_LOOK_EVERY_S)
            self._work.clear()
            self._record_all()
            now = monotonic()
            if now - synced >= _SYNC_EVERY_S:
                synced = now
                with self._failing():
                    self._recorder.sync()
            if now - told >= _PROGRESS_EVERY_S:
                told = now
                self._on_progress()
        self._record_all()
        with self._failing():
            self._recorder.close()

    def _record_all(self) -> None:
        while self._queue:
            # Who waits is told once for what is there now: each telling hands over the interpreter.
            for _ in range(len(self._queue)):
                outcome = self._queue.popleft()
                with self._failing():
                    if not self._recorder.record(outcome):
                        continue  # it was counted when it came first
                with self._failing():
                    self._on_recorded(outcome)
            for waited_for in (self._recorded, self._room):
                with waited_for:
                    waited_for.notify_all()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Report what goes wrong instead of raising it: without this thread, nobody's wait would end."""
        try:
            yield
        except Exception as error:
            if not self._failed:
                self._failed = True
                self._on_failure(error.message if isinstance(error, WriteError) else f"{type(error).__name__}: {error}")
