"""Interrupts of the main thread, held off while it is inside of the engine.

An exception that a signal handler raises may come between any two steps, also between taking a lock and knowing that
it is taken. So while the main thread waits for trials, Ctrl-C only leaves word, and is raised where nothing can be
left half done. SIGTERM, by which CI systems cancel a job, is taken as Ctrl-C.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupts:
    """Handles SIGINT and SIGTERM from :meth:`install` to :meth:`remove`, unless somebody else handles them."""

    def __init__(self) -> None:
        self.pending = False
        """Whether a signal came while interrupts were held off, and has not been raised yet."""
        self._held = False
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        """Take the signals over. Does nothing outside of the main thread, where Python allows no handlers."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
            if signal.getsignal(number) is usual:
                self._before[number] = signal.signal(number, self._handle)

    def remove(self) -> None:
        """Leave the signals as they were."""
        while self._before:
            signal.signal(*self._before.popitem())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold interrupts off for the block, and raise at its end what came meanwhile.

        :raises KeyboardInterrupt: at the end of the block
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False
            if self.pending:
                self.pending = False
                raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._held:
            self.pending = True
            return
        raise KeyboardInterrupt(signal.Signals(number).name)
