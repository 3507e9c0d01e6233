"""One session writes a variant, across processes and after a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.errors import LockedError, RefusedError, UnsafePathError
from pytest_hillclimb.flow import lock
from pytest_hillclimb.flow.layout import make_flow
from pytest_hillclimb.flow.lock import VariantLock
from pytest_hillclimb.flow.safe import SafeDir

OWNER = """
import sys, time
from pathlib import Path
from pytest_hillclimb.flow.layout import make_flow
from pytest_hillclimb.flow.lock import VariantLock

held = VariantLock.acquire(make_flow(Path(sys.argv[1]), "v1"))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def variant(tmp_path: Path) -> SafeDir:
    return make_flow(tmp_path, "v1")


def test_what_an_earlier_session_left_is_overwritten(variant: SafeDir, tmp_path: Path) -> None:
    (tmp_path / "v1/.lock").write_text('{"pid": 1, "host": "' + "x" * 5000 + '", "since": ""}')
    with VariantLock.acquire(variant), pytest.raises(LockedError, match=f"pid {os.getpid()} "):
        VariantLock.acquire(variant)


def test_second_session_is_refused_until_release(variant: SafeDir) -> None:
    held = VariantLock.acquire(variant)
    with pytest.raises(LockedError, match=rf"v1 is being written .*pid {os.getpid()} on .*wait .* another variant"):
        VariantLock.acquire(variant)
    held.release()
    held.release()
    with VariantLock.acquire(variant):
        pass
    VariantLock.acquire(variant).release()


def test_across_processes_and_after_a_kill(variant: SafeDir, tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(LockedError) as caught:
            VariantLock.acquire(variant)
        assert caught.value.__dict__["pid"] == owner.pid
        assert caught.value.__dict__["host"] == os.uname().nodename
    finally:
        owner.kill()
        owner.communicate()
    VariantLock.acquire(variant)
    assert json.loads((tmp_path / "v1/.lock").read_text())["pid"] == os.getpid()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1e999, "host": 1, "since": 2}', "[" * 900])
def test_unreadable_owner(variant: SafeDir, tmp_path: Path, content: str) -> None:
    held = VariantLock.acquire(variant)
    (tmp_path / "v1/.lock").write_text(content)
    with pytest.raises(LockedError, match="a session that has just begun"):
        VariantLock.acquire(variant)
    held.release()


@pytest.mark.parametrize("before", ["", "of the dead"])
def test_owner_that_has_only_just_begun_is_waited_for(variant: SafeDir, tmp_path: Path, before: str) -> None:
    held, file = VariantLock.acquire(variant), tmp_path / "v1/.lock"
    mine = file.read_text()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    file.write_text(json.dumps({**json.loads(mine), "pid": dead.pid}) if before else "")
    writing = threading.Timer(0.02, file.write_text, [mine])
    writing.start()
    with pytest.raises(LockedError, match=f"pid {os.getpid()} on "):
        VariantLock.acquire(variant)
    writing.join()
    held.release()


def test_owner_text_is_one_printable_line(variant: SafeDir, tmp_path: Path) -> None:
    held = VariantLock.acquire(variant)
    (tmp_path / "v1/.lock").write_text(json.dumps({"pid": 7, "host": "a\n\x1b[2Jb" + "x" * 200, "since": "\r"}))
    with pytest.raises(LockedError) as caught:
        VariantLock.acquire(variant)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 250
    held.release()


def test_replaced_lock_file_is_taken_anew(variant: SafeDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, real, calls = tmp_path / "v1/.lock", lock.lock_descriptor, []

    def racing(fd: int, **options: Any) -> bool:
        calls.append(fd)
        if len(calls) < 3:
            file.unlink()
        if len(calls) == 1:
            file.touch()
        return real(fd, **options)

    monkeypatch.setattr(lock, "lock_descriptor", racing)
    held = VariantLock.acquire(variant)
    assert len(calls) == 3
    assert json.loads(file.read_text())["pid"] == os.getpid()
    held.release()


def test_lock_file_that_keeps_changing(variant: SafeDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_descriptor", lambda fd, blocking: not (tmp_path / "v1/.lock").unlink())
    with pytest.raises(RefusedError, match="replaced again and again"):
        VariantLock.acquire(variant)


def test_file_system_without_locks(variant: SafeDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(fd: int, blocking: bool) -> bool:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(lock, "lock_descriptor", no_locks)
    with pytest.raises(RefusedError, match=r"cannot lock v1/.lock: No locks available"):
        VariantLock.acquire(variant)


def test_linked_lock_file(variant: SafeDir, tmp_path: Path) -> None:
    (tmp_path / "v1/.lock").symlink_to(tmp_path / "target")
    with pytest.raises(UnsafePathError, match="symbolic link"):
        VariantLock.acquire(variant)
    assert not (tmp_path / "target").exists()
