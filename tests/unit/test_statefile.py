"""The loop state: read strictly, written only to record an approval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.errors import StateError, UnsafePathError
from pytest_hillclimb.flow.layout import make_flow
from pytest_hillclimb.flow.safe import SafeDir
from pytest_hillclimb.flow.statefile import read_state, record_approval

SHA = "ab" * 32


@pytest.fixture
def root(tmp_path: Path) -> SafeDir:
    return make_flow(tmp_path, "flow")


@pytest.fixture
def file(tmp_path: Path, root: SafeDir) -> Path:
    return tmp_path / "flow/_state.json"


def test_absent_or_null_is_empty(root: SafeDir, file: Path) -> None:
    assert read_state(None) == {}
    assert read_state(root) == {}
    file.write_text("null")
    assert read_state(root) == {}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'\xef\xbb\xbf{"a": 1}', "remove the byte-order mark"),
        (b'{\n  "a": 1,\n  "b": "secret",\n}\n', r"is not valid JSON \(line [34]\)"),
        (b"", r"is not valid JSON \(line 1\)"),
        (b'{"a": NaN}', "holds NaN"),
        (b'{\n"a": "\xff"}', r"is not UTF-8 \(line 2\)"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1]", "not a list"),
        (b"false", "not a bool"),
    ],
)
def test_unusable_state(root: SafeDir, file: Path, data: bytes, reason: str) -> None:
    file.write_bytes(data)
    with pytest.raises(StateError, match=rf"^flow/_state.json .*{reason}") as caught:
        read_state(root)
    assert "secret" not in str(caught.value)
    with pytest.raises(StateError):
        record_approval(root, SHA)
    assert file.read_bytes() == data


def test_approval_changes_one_key(root: SafeDir, file: Path) -> None:
    state: dict[str, Any] = {
        "description": "Übersicht, 日本語",
        "best": None,
        "price": 3.0,
        "odd": "\ud800",
        "ids": [],
    }
    file.write_text(json.dumps(state))
    record_approval(root, SHA)
    text = file.read_text()
    assert list(json.loads(text).items()) == [*state.items(), ("harness_sha", SHA)]
    assert text.startswith('{\n  "description": "Übersicht, 日本語",\n')
    assert text.endswith(f'"harness_sha": "{SHA}"\n}}\n')
    assert [entry.name for entry in file.parent.iterdir()] == ["_state.json"]


def test_renewed_approval_keeps_the_place_of_the_key(root: SafeDir, file: Path) -> None:
    file.write_text('{"harness_sha": "old", "flow": "x"}')
    record_approval(root, SHA)
    assert list(json.loads(file.read_text()).items()) == [("harness_sha", SHA), ("flow", "x")]


def test_recorded_approval_writes_nothing(root: SafeDir, file: Path) -> None:
    text = f'{{"harness_sha":"{SHA}"}}'
    file.write_text(text)
    before = file.stat()
    record_approval(root, SHA)
    assert file.read_text() == text
    assert file.stat() == before


def test_first_approval_makes_the_file(root: SafeDir, file: Path) -> None:
    record_approval(root, SHA)
    assert file.read_text() == f'{{\n  "harness_sha": "{SHA}"\n}}\n'


def test_number_out_of_range_is_not_rewritten(root: SafeDir, file: Path) -> None:
    file.write_text('{"n": 1e999}')
    with pytest.raises(StateError, match="too large"):
        record_approval(root, SHA)
    assert file.read_text() == '{"n": 1e999}'


def test_link_is_refused(root: SafeDir, file: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("{}")
    file.symlink_to(target)
    for use in (lambda: read_state(root), lambda: record_approval(root, SHA)):
        with pytest.raises(UnsafePathError, match="symbolic link"):
            use()
    assert target.read_text() == "{}"
