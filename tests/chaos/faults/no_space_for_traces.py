"""Fault: the disk has no space left for any trace."""

from __future__ import annotations

import errno
from pathlib import Path

from pytest_hillclimb.flow.safe import SafeDir

_create = SafeDir.create


def create(self: SafeDir, name: str, data: bytes) -> None:
    if self.shown.endswith("traces"):
        with Path("evidence.log").open("a") as file:
            file.write(f"no space for {name}\n")
        raise OSError(errno.ENOSPC, "No space left on device")
    _create(self, name, data)


SafeDir.create = create  # type: ignore[method-assign]
