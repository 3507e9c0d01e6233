"""Ending well when the process is told to end: SIGTERM, as CI systems cancel a job, is taken as Ctrl-C."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Termination:
    """Turns SIGTERM into an interrupt of the session, unless somebody else handles it."""

    def __init__(self) -> None:
        self._installed = False

    def install(self) -> None:
        """Take over SIGTERM. Does nothing outside of the main thread, where Python allows no handlers."""
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _interrupt)
            self._installed = True

    def remove(self) -> None:
        """Leave SIGTERM as it was."""
        if self._installed:
            self._installed = False
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt("SIGTERM")
