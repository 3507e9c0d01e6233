"""Descriptor-bound access: links, hard links and wrong kinds are refused and their targets keep their bytes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from planting import DIRECTORY_PLANTS, FILE_PLANTS, SECRET, Plant

from pytest_hillclimb.errors import UnsafePathError
from pytest_hillclimb.flow.layout import make_flow
from pytest_hillclimb.flow.safe import SafeDir


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    target = tmp_path / "outside.txt"
    target.write_bytes(SECRET)
    return target


@pytest.fixture
def flow(tmp_path: Path) -> SafeDir:
    return make_flow(tmp_path, "flow")


@pytest.mark.parametrize("plant", FILE_PLANTS)
@pytest.mark.parametrize("use", ["read", "check", "overwrite", "replace"])
def test_planted_file_is_refused(flow: SafeDir, outside: Path, plant: Plant, use: str) -> None:
    plant(outside.parent / "flow" / "x", outside)
    arguments = [b"new"] if use in ("overwrite", "replace") else []
    with pytest.raises(UnsafePathError, match=r"^flow/x (is|has) a ") as caught:
        getattr(flow, use)("x", *arguments)
    assert "\n" not in str(caught.value)
    assert outside.read_bytes() == SECRET
    assert not outside.with_name("nowhere").exists()
    assert os.listdir(flow.fd) == ["x"]


@pytest.mark.parametrize("plant", FILE_PLANTS)
def test_create_never_takes_a_used_name(flow: SafeDir, outside: Path, plant: Plant) -> None:
    plant(outside.parent / "flow" / "x", outside)
    assert flow.exists("x")
    with pytest.raises(FileExistsError):
        flow.create("x", b"new")
    assert outside.read_bytes() == SECRET


@pytest.mark.parametrize("plant", DIRECTORY_PLANTS)
@pytest.mark.parametrize("use", ["open_dir", "make_dir"])
def test_planted_directory_is_refused(flow: SafeDir, outside: Path, plant: Plant, use: str) -> None:
    plant(outside.parent / "flow" / "x", outside)
    with pytest.raises(UnsafePathError, match=r"flow/x is a .* where the flow needs a directory"):
        getattr(flow, use)("x")


def test_link_to_a_directory_is_refused(flow: SafeDir, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "flow/x").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    with pytest.raises(UnsafePathError, match="flow/x is a symbolic link"):
        flow.make_dir("x")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\0b"])
@pytest.mark.parametrize("use", ["open_dir", "make_dir", "read", "exists", "check"])
def test_only_a_single_component_names_a_child(flow: SafeDir, name: str, use: str) -> None:
    with pytest.raises(UnsafePathError, match="cannot name a file or directory in flow"):
        getattr(flow, use)(name)


def test_files_round_trip(flow: SafeDir, tmp_path: Path) -> None:
    assert flow.read("x") is None
    assert flow.check("x") is None
    assert not flow.exists("x")
    flow.create("x", b"one")
    flow.overwrite("x", b"a longer two")
    flow.overwrite("x", b"3")
    assert flow.read("x") == b"3"
    flow.replace("x", b"four")
    flow.replace("y", b"")
    assert (flow.read("x"), flow.read("y")) == (b"four", b"")
    assert sorted(os.listdir(tmp_path / "flow")) == ["x", "y"]


def test_modes(flow: SafeDir, tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        flow.create("new", b"")
        flow.make_dir("sub").close()
    finally:
        os.umask(old)
    (tmp_path / "flow/private").touch(0o600)
    flow.replace("private", b"x")
    modes = {name: stat.S_IMODE((tmp_path / "flow" / name).stat().st_mode) for name in ("new", "sub", "private")}
    assert modes == {"new": 0o644, "sub": 0o755, "private": 0o600}


def test_short_writes_lose_nothing(flow: SafeDir, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    for use in (flow.create, flow.overwrite, flow.replace):
        use(use.__name__, b"ten bytes.")
        assert flow.read(use.__name__) == b"ten bytes."


@pytest.mark.parametrize("use", ["create", "replace"])
def test_a_failing_write_leaves_nothing(flow: SafeDir, monkeypatch: pytest.MonkeyPatch, use: str) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        getattr(flow, use)("x", b"data")
    assert os.listdir(flow.fd) == []


def test_a_failing_replace_keeps_the_old_file(flow: SafeDir, monkeypatch: pytest.MonkeyPatch) -> None:
    flow.create("x", b"old")
    monkeypatch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error"):
        flow.replace("x", b"new")
    assert flow.read("x") == b"old"
    assert os.listdir(flow.fd) == ["x"]


def test_errors_other_than_not_found_are_not_absence(flow: SafeDir) -> None:
    for use in (flow.exists, flow.read, flow.open_dir, flow.check):
        with pytest.raises(OSError, match="File name too long"):
            use("x" * 300)


def test_close_is_idempotent(flow: SafeDir) -> None:
    with flow:
        fd = flow.fd
    flow.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
