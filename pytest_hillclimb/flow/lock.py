"""One session at a time writes a variant.

Pattern: a lock of the operating system on the open file ``<variant>/.lock``. It ends with the process, however that
ends, so what a killed session left in the file means nothing: only who holds the lock may be believed.

Accepted trade-offs: the file stays behind, empty of meaning. A session that has the lock but has not yet written who
it is, is given a moment to do so; another one's refusal then may still name the one before, if that ran on another
machine. Some network file systems have no locks, and are refused.

Scope: sessions that see the same file system, on one machine or several.
"""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from filelock import lock_descriptor, unlock_descriptor

from pytest_hillclimb.errors import LockedError, RefusedError
from pytest_hillclimb.flow import document
from pytest_hillclimb.flow.layout import LOCK
from pytest_hillclimb.flow.safe import SafeDir, refused, write_all

_TRIES = 10
_LOOKS, _LOOK_AGAIN_S = 10, 0.01
_held: WeakSet[VariantLock] = WeakSet()


class VariantLock:
    """The right to write a variant; held until :meth:`release` or the end of the process."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd
        _held.add(self)

    @classmethod
    def acquire(cls, directory: SafeDir) -> Self:
        """Take the lock of the variant in *directory*, without waiting for it.

        :raises LockedError: if another session holds it, with its ``pid``, ``host`` and ``since`` where known
        :raises UnsafePathError: if the lock file is a link or no regular file
        :raises RefusedError: if the file system cannot lock
        """
        with refused(f"cannot lock {directory.path_of(LOCK)}"):
            for _ in range(_TRIES):
                fd = directory.open_file(LOCK, os.O_RDWR | os.O_CREAT)
                try:
                    if _take(fd, directory):
                        return cls(fd)
                except BaseException:
                    os.close(fd)
                    raise
                os.close(fd)
        raise RefusedError(f"{directory.path_of(LOCK)} is replaced again and again; it must be left alone")

    def release(self) -> None:
        """Give the lock up; doing it twice is harmless."""
        fd, self._fd = self._fd, None
        if fd is not None:
            # Closing alone would not do: a forked child may hold the descriptor too.
            unlock_descriptor(fd)
            os.close(fd)

    def forget(self) -> None:
        """In a forked child: close the descriptor, which would keep the lock beyond its owner's death."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _forget_all() -> None:
    for lock in list(_held):
        lock.forget()


os.register_at_fork(after_in_child=_forget_all)


def _take(fd: int, directory: SafeDir) -> bool:
    """Lock the open file; return False if the path has come to name another file."""
    if not lock_descriptor(fd, blocking=False):
        raise _locked(directory, _wait_for_owner(fd))
    there = directory.check(LOCK)
    if there is None or not os.path.samestat(os.fstat(fd), there):
        return False
    now = datetime.now(UTC).isoformat(timespec="seconds")
    os.ftruncate(fd, 0)
    write_all(fd, json.dumps({"pid": os.getpid(), "host": os.uname().nodename, "since": now}).encode())
    return True


def _locked(directory: SafeDir, owner: dict[str, Any]) -> LockedError:
    who = "pid {pid} on {host}, since {since}".format_map(owner) if owner else "a session that has just begun"
    text = f"{directory.shown} is being written by another session ({who}); wait for its end, or run another variant"
    return LockedError(text, pid=owner.get("pid"), host=owner.get("host"), since=owner.get("since"))


def _wait_for_owner(fd: int) -> dict[str, Any]:
    """Return what the lock file tells of its owner, who may be about to write it."""
    owner = _owner(os.pread(fd, 1000, 0))
    for _ in range(_LOOKS):
        if owner and not _is_dead(owner):
            break
        time.sleep(_LOOK_AGAIN_S)
        owner = _owner(os.pread(fd, 1000, 0))
    return owner


def _is_dead(owner: dict[str, Any]) -> bool:
    if owner["host"] != _printable(os.uname().nodename):
        return False
    try:
        os.kill(owner["pid"], 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # it is somebody else's
        return False
    return False


def _owner(content: bytes) -> dict[str, Any]:
    try:
        owner = document.parse(content)
    except ValueError:
        return {}
    if not isinstance(owner, dict) or not isinstance(owner.get("pid"), int):
        return {}
    return {"pid": owner["pid"], "host": _printable(owner.get("host")), "since": _printable(owner.get("since"))}


def _printable(value: object) -> str:
    return "".join(char for char in str(value) if char.isprintable())[:80]
