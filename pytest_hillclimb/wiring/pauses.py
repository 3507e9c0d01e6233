"""The pause that a server has asked one worker for, told to the other workers of the same machine.

A file holds the wall-clock time until which nothing should be started. Workers on other machines do not find it, and
wait only for what they are asked themselves.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from time import time

_LONGEST_S = 3600.0


class SharedPause:
    """The file, as one process sees it.

    :param path: where it is; None for a file of one's own, in a new temporary directory
    """

    def __init__(self, path: str | None = None) -> None:
        self._own = None if path is not None else tempfile.mkdtemp(prefix="hillclimb-pause-")
        self.path = Path(path if path is not None else f"{self._own}/until")

    def tell(self, seconds: float) -> None:
        """Tell the others that nothing should be started for *seconds*; they may not be there to be told."""
        until = time() + seconds
        if until <= self._until():
            return
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            new.write_text(repr(until))
            new.replace(self.path)
        except OSError:
            return

    def left(self) -> float:
        """Return the seconds for which nothing should be started, 0 when there is no pause."""
        return min(max(0.0, self._until() - time()), _LONGEST_S)

    def close(self) -> None:
        """Remove a file of one's own."""
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    def _until(self) -> float:
        try:
            return float(self.path.read_text())
        except (OSError, ValueError):
            return 0.0
