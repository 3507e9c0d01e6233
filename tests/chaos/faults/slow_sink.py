"""Fault: the first trace takes as long to write as the app takes to be called for every case."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pytest_hillclimb.flow.safe import SafeDir

CALLS, PATIENCE_S = 8, float(os.environ.get("SINK_PATIENCE_S", "10"))
_create = SafeDir.create
_slow = [True]


def create(self: SafeDir, name: str, data: bytes) -> None:
    if self.shown.endswith("traces") and _slow:
        _slow.clear()
        end = time.monotonic() + PATIENCE_S
        while Path("spend.log").read_text().count("begin") < CALLS and time.monotonic() < end:
            time.sleep(0.005)
        with Path("evidence.log").open("a") as file:
            file.write(f"{name} was written after {Path('spend.log').read_text().count('begin')} calls\n")
    _create(self, name, data)


SafeDir.create = create  # type: ignore[method-assign]
