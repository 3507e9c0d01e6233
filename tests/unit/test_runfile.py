"""``run.json`` and ``summary.json``: models are not mixed, and nothing of other people's is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_hillclimb.errors import RefusedError
from pytest_hillclimb.flow.layout import make_flow
from pytest_hillclimb.flow.runfile import add_summary, check_model, write_run
from pytest_hillclimb.flow.safe import SafeDir


@pytest.fixture
def variant(tmp_path: Path) -> SafeDir:
    return make_flow(tmp_path, "v1")


def test_rows_without_run_file_are_adopted(variant: SafeDir) -> None:
    check_model(None, "m", False)
    check_model(variant, "m", True)
    variant.create("run.json", b'{"reps": 2}')
    check_model(variant, "m", True)


@pytest.mark.parametrize(("before", "now"), [("m1", "m2"), ("m1", None), (None, "m2")])
def test_another_model_is_refused_once_rows_exist(variant: SafeDir, before: str | None, now: str | None) -> None:
    write_run(variant, {"model": before})
    check_model(variant, before, True)
    check_model(variant, now, False)
    with pytest.raises(RefusedError, match="use the same model, or another variant") as caught:
        check_model(variant, now, True)
    assert all(model in str(caught.value) for model in (before, now) if model)


def test_candidate_with_another_model_is_refused(variant: SafeDir) -> None:
    write_run(variant, {"model": None, "candidates": {"a": "m1"}})
    write_run(variant, {"model": None, "candidates": {"b": "m2"}})
    check_model(variant, None, True, {"a": "m1", "b": "m2", "c": "m3"})
    with pytest.raises(RefusedError, match=r"candidate a .* m1, .* m3"):
        check_model(variant, None, True, {"a": "m3"})


@pytest.mark.parametrize("data", [b"{", b"[]", b"null", b"\xff", b"\xef\xbb\xbf{}"])
def test_broken_run_file_is_refused(variant: SafeDir, data: bytes) -> None:
    variant.create("run.json", data)
    for use in (lambda: check_model(variant, "m", True), lambda: write_run(variant, {"model": "m"})):
        with pytest.raises(RefusedError, match=r"^v1/run.json "):
            use()
    assert variant.read("run.json") == data


def test_run_file_keeps_its_beginning_and_foreign_keys(variant: SafeDir) -> None:
    write_run(variant, {"created_at": "monday", "model": "m", "reps": 1})
    variant.overwrite("run.json", (variant.read("run.json") or b"").replace(b"{", b'{"note": "\xc3\xbc", ', 1))
    write_run(variant, {"created_at": "tuesday", "reps": 2})
    data = variant.read("run.json") or b""
    assert json.loads(data) == {"note": "ü", "created_at": "monday", "model": "m", "reps": 2}
    assert data.startswith('{\n  "note": "ü",\n'.encode())


def test_unchanged_run_file_is_not_written(variant: SafeDir, tmp_path: Path) -> None:
    (tmp_path / "v1/run.json").write_text('{"model":"m"}')
    write_run(variant, {"model": "m"})
    assert (tmp_path / "v1/run.json").read_text() == '{"model":"m"}'


def test_summary_gets_only_what_it_lacks(variant: SafeDir, tmp_path: Path) -> None:
    file = tmp_path / "v1/summary.json"
    assert add_summary(variant, {"model": "m", "label": "first"}) is None
    assert file.read_text() == '{\n  "model": "m",\n  "label": "first"\n}\n'
    file.write_text('{"label":"mine","note":1.0,"model":null}')
    assert add_summary(variant, {"model": "m", "label": "first"}) is None
    assert file.read_text() == '{"label":"mine","note":1.0,"model":null}'
    assert add_summary(variant, {"model": "m", "target": "t"}) is None
    assert list(json.loads(file.read_text()).items()) == [
        ("label", "mine"),
        ("note", 1.0),
        ("model", None),
        ("target", "t"),
    ]


@pytest.mark.parametrize("data", [b"[1]", b"{", b"null", b"\xef\xbb\xbf{}"])
def test_foreign_summary_is_left_alone(variant: SafeDir, data: bytes) -> None:
    variant.create("summary.json", data)
    assert "v1/summary.json" in (add_summary(variant, {"model": "m"}) or "")
    assert variant.read("summary.json") == data


def test_unwritable_summary_is_a_warning(variant: SafeDir, tmp_path: Path) -> None:
    (tmp_path / "v1/summary.json").symlink_to(tmp_path / "target")
    assert "symbolic link" in (add_summary(variant, {"model": "m"}) or "")
    assert not (tmp_path / "target").exists()
