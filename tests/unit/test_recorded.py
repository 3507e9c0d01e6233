"""Resume: which slots are filled, by rows of this plugin and of other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.errors import HillclimbError, RefusedError
from pytest_hillclimb.flow.layout import make_flow
from pytest_hillclimb.flow.recorded import Recorded, Score, numbers, read_recorded, verdict


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "v1").mkdir()
    return tmp_path / "v1/results.jsonl"


def recorded(file: Path, *rows: dict[str, Any]) -> Recorded:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_recorded(make_flow(file.parent.parent, "v1"))


def test_nothing_recorded(file: Path) -> None:
    assert read_recorded(None).rows == {}
    assert read_recorded(make_flow(file.parent.parent, "v1")).rows == {}


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"prompt_id": "a", "id": "b", "rep": 2}, ("a", 2)),
        ({"id": "b", "case_id": "c"}, ("b", 0)),
        ({"case_id": "c", "rep": None}, ("c", 0)),
        ({"prompt_id": None, "id": 7, "rep": 1.0}, ("7", 1)),
        ({"prompt_id": 1.0}, ("1", 0)),
    ],
)
def test_keys(file: Path, row: dict[str, Any], key: tuple[str, int]) -> None:
    assert list(recorded(file, row).rows) == [key]


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"prompt_id": "", "id": "b"},
        {"prompt_id": " \t"},
        {"prompt_id": ["a"]},
        *({"prompt_id": "a", "rep": rep} for rep in (True, False, -1, 1.5, "0", [0])),
    ],
)
def test_rows_without_a_slot(file: Path, row: dict[str, Any]) -> None:
    found = recorded(file, row)
    assert (found.rows, found.ignored) == ({}, 1)


def test_rows_of_older_tools(file: Path) -> None:
    found = recorded(
        file,
        {"case_id": "k0", "grade": True, "model": "m"},
        {"id": "k1", "rep": 0, "grade": 0.5},
        {"prompt_id": "k2", "rep": 0, "status": "ok", "grade": {"score": 1}},
        {"prompt_id": "k3", "grade": {"score": 0}},
        {"prompt_id": "k4", "rep": 0, "status": "error", "error": "boom"},
    )
    assert [key for key, _ in found.rows] == ["k0", "k1", "k2", "k3"]
    assert found.errors == 1
    assert found.rows["k0", 0][2:] == (True, None, "m")
    assert found.scores[:3] == [
        Score("k0", None, {"score": 1.0}),
        Score("k1", None, {"score": 0.5}),
        Score("k2", "ok", {"score": 1.0}),
    ]


def test_first_row_of_a_slot_counts_and_errors_fill_none(file: Path) -> None:
    found = recorded(
        file,
        {"prompt_id": "a", "status": "error"},
        {"prompt_id": "a", "status": "truncated", "n": 1},
        {"prompt_id": "a", "status": "ok", "n": 2},
    )
    assert (found.errors, found.duplicates) == (1, 1)
    assert found.rows["a", 0].status == "truncated"
    assert found.load(("a", 0))["n"] == 1
    assert [score.status for score in found.scores] == ["error", "truncated", "ok"]


def test_replay_of_the_whole_file_changes_no_mean(file: Path) -> None:
    rows = [{"prompt_id": "a", "rep": rep, "status": "ok", "grade": {"pass": rep}} for rep in (0, 1)]
    once, twice = recorded(file, *rows), recorded(file, *rows, *rows)
    assert twice.scores == once.scores
    assert twice.rows == once.rows
    assert (once.duplicates, twice.duplicates) == (0, 2)


@pytest.mark.parametrize(
    "again",
    [
        {"prompt_id": "a", "rep": 0, "grade": 2},  # another measurement of the slot
        {"prompt_id": "b", "grade": 1},  # rows of a tool that does not write the rep: these are two reps
        {"prompt_id": "c", "rep": 0, "status": "error", "grade": 1},
    ],
)
def test_rows_that_are_no_replay_count_in_means(file: Path, again: dict[str, Any]) -> None:
    first = {**again, "grade": 1}
    found = recorded(file, first, again)
    assert [score.grade for score in found.scores] == [{"score": 1}, {"score": again["grade"]}]


@pytest.mark.parametrize(
    ("row", "passed"),
    [
        ({"passed": False, "grade": {"pass": 1}}, False),
        ({"passed": 1, "grade": {"pass": 1}}, True),
        ({"passed": None, "grade": {"pass": 0.5}}, False),
        ({"grade": {"pass": True}}, True),
        ({"grade": False}, False),
        ({"grade": {"pass": "yes"}}, None),
        ({"grade": {"score": 1}}, None),
        ({"grade": 1}, None),
        ({}, None),
    ],
)
def test_verdict(row: dict[str, Any], passed: bool | None) -> None:
    assert verdict(row) is passed


def test_numbers() -> None:
    grade = {"a": True, "b": 2, "c": 0.5, "d": "1", "e": None, "f": [1], "g": 10**400, "h": float("inf")}
    assert numbers(grade) == {"a": 1.0, "b": 2.0, "c": 0.5}
    assert numbers(3) == {"score": 3.0}
    assert numbers("x") == numbers(None) == numbers([1]) == {}


def test_load_reads_the_row_again(file: Path) -> None:
    rows = [{"prompt_id": f"c{n}", "rep": 0, "text": "ü" * n} for n in range(5)]
    file.write_bytes(b"broken\n\n" + b"".join(json.dumps(r, ensure_ascii=False).encode() + b"\n" for r in rows))
    found = read_recorded(make_flow(file.parent.parent, "v1"))
    assert found.broken == 1
    assert [found.load((f"c{n}", 0)) for n in range(5)] == rows
    with pytest.raises(KeyError):
        found.load(("c0", 1))


@pytest.mark.parametrize("now", [b"", b'{"prompt_id": "b"}\n', b"[1, 2, 3, 4, 5, 6]\n", b"\xff" * 30, None])
def test_load_of_a_changed_file(file: Path, now: bytes | None) -> None:
    found = recorded(file, {"prompt_id": "a"})
    file.unlink()
    if now is not None:
        file.write_bytes(now)
    with pytest.raises(HillclimbError, match="changed during the run: the row of a rep0 is gone"):
        found.load(("a", 0))


def test_linked_results_are_refused(file: Path) -> None:
    file.symlink_to("/etc/hostname")
    with pytest.raises(RefusedError, match=r"v1/results.jsonl is a symbolic link"):
        read_recorded(make_flow(file.parent.parent, "v1"))
