"""Brings outcomes to the recorder in time, whatever the main thread is doing.

Outcomes are queued by the threads that end trials. Whoever waits for one drains the queue; a thread of its own looks
every few hundredths of a second, so that a row is on disk within 0.1 s also while nobody waits. It also syncs the
rows once a second and keeps the progress line current.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from time import monotonic

from pytest_hillclimb.engine.outcome import Outcome
from pytest_hillclimb.errors import WriteError
from pytest_hillclimb.flow.recorder import Recorder

_LOOK_EVERY_S = 0.03
_SYNC_EVERY_S = 1.0
_PROGRESS_EVERY_S = 30.0
_MAX_QUEUED = 16  # beyond this, whoever adds an outcome records some: memory must not grow with transcripts


class Writer:
    """A queue of outcomes before a recorder.

    :param recorder: where outcomes are written
    :param on_recorded: called with each outcome once it is on disk
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
        self._queue: SimpleQueue[Outcome | None] = SimpleQueue()
        self._recording = threading.Lock()
        self._closing = threading.Event()
        self._failed = False
        self._drained_at = 0.0
        self._thread = threading.Thread(target=self._run, name="hillclimb-writer", daemon=True)
        self._thread.start()

    def put(self, outcome: Outcome | None) -> None:
        """Add an outcome; None only wakes whoever waits."""
        self._queue.put(outcome)
        if self._queue.qsize() > _MAX_QUEUED:
            self.drain()

    def drain(self, wait: float = 0.0) -> None:
        """Record all that is queued; if nothing is, wait up to *wait* seconds for something."""
        self._drained_at = monotonic()
        try:
            outcome = self._queue.get(timeout=wait) if wait > 0 else self._queue.get_nowait()
            while True:
                if outcome is not None:
                    self._record(outcome)
                outcome = self._queue.get_nowait()
        except Empty:
            return

    def close(self) -> None:
        """Record what is queued and bring everything to disk."""
        self._closing.set()
        self._thread.join()
        self.drain()
        with self._recording, self._failing():
            self._recorder.close()

    def _record(self, outcome: Outcome) -> None:
        with self._recording, self._failing():
            self._recorder.record(outcome)
        self._on_recorded(outcome)

    def _run(self) -> None:
        synced = told = monotonic()
        while not self._closing.wait(_LOOK_EVERY_S):
            now = monotonic()
            if not self._queue.empty() and now - self._drained_at > _LOOK_EVERY_S:
                self.drain()
                self._queue.put(None)
            if now - synced >= _SYNC_EVERY_S:
                synced = now
                with self._recording, self._failing():
                    self._recorder.sync()
            if now - told >= _PROGRESS_EVERY_S:
                told = now
                self._on_progress()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Report a failed write instead of raising it on whatever thread it happened."""
        try:
            yield
        except WriteError as error:
            self._fail(error.message)

    def _fail(self, reason: str) -> None:
        if not self._failed:
            self._failed = True
            self._on_failure(reason)
