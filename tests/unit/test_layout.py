"""The flow root and the directories below it: no link on the way, opened once, nothing made by looking."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from planting import DIRECTORY_PLANTS, FILE_PLANTS, SECRET, Plant

from pytest_hillclimb.errors import RefusedError, UnsafePathError
from pytest_hillclimb.flow import layout
from pytest_hillclimb.flow.layout import FlowDir, make_flow, open_flow


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    target = tmp_path / "outside.txt"
    target.write_bytes(SECRET)
    return target


def test_absent_flow_is_none_and_nothing_is_made(tmp_path: Path) -> None:
    assert open_flow(tmp_path, "a/b/c") is None
    assert open_flow(tmp_path, str(tmp_path / "a/b")) is None
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("given", ["a/b/flow", "a//b/flow///"])
def test_relative_flow_is_made_below_the_base(tmp_path: Path, given: str) -> None:
    with make_flow(tmp_path, given) as flow:
        flow.create("x", b"1")
        assert flow.shown == "a/b/flow"
    with open_flow(tmp_path, given) or pytest.fail("not found") as flow:
        assert flow.read("x") == b"1"


@pytest.mark.parametrize(
    "given", ["./flow", "flow/.", "a/../flow", "..", ".", "flow/..", "/tmp/../flow", "", "/", "//", "a\0b"]
)
@pytest.mark.parametrize("use", [open_flow, make_flow])
def test_unusable_flow_paths(tmp_path: Path, given: str, use: Callable[[Path, str], object]) -> None:
    with pytest.raises(UnsafePathError):
        use(tmp_path, given)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("link", ["a", "a/b", "a/b/flow"])
@pytest.mark.parametrize("use", [open_flow, make_flow])
def test_linked_component_of_a_relative_flow(tmp_path: Path, link: str, use: Callable[[Path, str], object]) -> None:
    base = tmp_path / "base"
    (base / link).parent.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "b/flow").mkdir(parents=True)
    (elsewhere / "flow").mkdir()
    (base / link).symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(UnsafePathError, match=f"^{link} is a symbolic link"):
        use(base, "a/b/flow/")


def test_ancestors_of_an_absolute_flow_are_trusted_but_not_the_flow(tmp_path: Path) -> None:
    (tmp_path / "real/flow").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    flow = open_flow(Path("/nonexistent"), f"{tmp_path}/link/flow")
    assert flow is not None
    flow.create("x", b"1")
    assert (tmp_path / "real/flow/x").read_bytes() == b"1"
    with pytest.raises(UnsafePathError, match="link is a symbolic link"):
        open_flow(tmp_path, f"{tmp_path}/link/")


def test_linked_base_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    make_flow(tmp_path / "link", "flow").close()
    assert (tmp_path / "real/flow").is_dir()


def test_system_errors_become_refusals(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RefusedError, match=r"^cannot make the flow directory .*(Not a directory|File exists)"):
        make_flow(tmp_path, f"{tmp_path}/file/flow")


def test_unsupported_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "SUPPORTED", False)
    with pytest.raises(RefusedError, match="needs Linux or macOS"):
        open_flow(tmp_path, "flow")


def test_directories_are_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FlowDir(tmp_path, "flow") as flow:
        assert flow.find() is None
        assert flow.find("v1", "traces") is None
        assert not (tmp_path / "flow").exists()
        traces = flow.make("v1", "traces")
        monkeypatch.setattr(os, "open", lambda *a, **k: pytest.fail("opened again"))
        assert flow.make("v1", "traces") is traces
        assert flow.find("v1", "traces") is traces
    assert traces.fd == -1


def test_swapped_directory_gets_nothing_and_is_reported(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x").write_bytes(SECRET)
    with FlowDir(tmp_path, "flow") as flow:
        flow.make("v1").overwrite("x", b"one")
        assert flow.moved("v1") is None
        (tmp_path / "flow/v1").rename(tmp_path / "aside")
        (tmp_path / "flow/v1").symlink_to(elsewhere, target_is_directory=True)
        flow.make("v1").overwrite("x", b"two")
        assert "flow/v1 is a symbolic link" in (flow.moved("v1") or "")
    assert (elsewhere / "x").read_bytes() == SECRET
    assert (tmp_path / "aside/x").read_bytes() == b"two"


@pytest.mark.parametrize("moved", ["flow", "flow/v1"])
@pytest.mark.parametrize("again", [True, False])
def test_moved_directory_is_reported(tmp_path: Path, moved: str, again: bool) -> None:
    with FlowDir(tmp_path, "flow") as flow:
        assert flow.moved("v1") is None
        flow.make("v1")
        (tmp_path / moved).rename(tmp_path / "aside")
        if again:
            (tmp_path / "flow/v1").mkdir(parents=True)
        assert "flow/v1 was moved or replaced" in (flow.moved("v1") or "")


PLACES = [
    *(f"flow/v1/{name}" for name in ("results.jsonl", "errors.jsonl", "progress.txt", "run.json", "summary.json")),
    "flow/_state.json",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("plant", FILE_PLANTS)
def test_preflight_of_files(tmp_path: Path, outside: Path, place: str, plant: Plant) -> None:
    (tmp_path / "flow/v1").mkdir(parents=True)
    plant(tmp_path / place, outside)
    with pytest.raises(UnsafePathError, match=f"^{place} "):
        FlowDir(tmp_path, "flow").preflight("v1")


@pytest.mark.parametrize("place", ["flow", "flow/baseline", "flow/baseline/ref", "flow/v1", "flow/v1/traces"])
@pytest.mark.parametrize("plant", DIRECTORY_PLANTS)
def test_preflight_of_directories(tmp_path: Path, outside: Path, place: str, plant: Plant) -> None:
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    plant(tmp_path / place, outside)
    with pytest.raises(UnsafePathError, match=f"^{place} "):
        FlowDir(tmp_path, "flow").preflight("v1")


def test_preflight_makes_nothing(tmp_path: Path) -> None:
    FlowDir(tmp_path, "flow").preflight("v1")
    assert os.listdir(tmp_path) == []
    (tmp_path / "flow").mkdir()
    FlowDir(tmp_path, "flow").preflight("baseline")
    assert os.listdir(tmp_path / "flow") == []
