"""Frozen references: written once, whole, and read through no link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.errors import UnsafePathError
from pytest_hillclimb.flow.layout import make_flow
from pytest_hillclimb.flow.references import REF_SUFFIXES, References, read_reference
from pytest_hillclimb.flow.safe import SafeDir


@pytest.fixture
def ref(tmp_path: Path) -> SafeDir:
    return make_flow(tmp_path, "ref")


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("as it is\r\n", "as it is\r\n"),
        ("", ""),
        ({"a": [1, None], "ü": "x"}, '{"a":[1,null],"ü":"x"}'),
        ([], "[]"),
        (False, "false"),
        ("lone \ud800", "lone \ufffd"),
    ],
)
def test_frozen_once(ref: SafeDir, tmp_path: Path, output: Any, text: str) -> None:
    references = References(ref)
    assert references.freeze("case", output)
    assert not references.freeze("case", "another")
    assert not References(ref, {"case"}).freeze("case", "another")
    assert (tmp_path / "ref/case").read_bytes() == text.encode()
    assert read_reference(ref, "case") == text
    assert os.listdir(tmp_path / "ref") == ["case"]


def test_first_name_is_read(ref: SafeDir) -> None:
    assert read_reference(None, "case") is None
    assert read_reference(ref, "case") is None
    for suffix in reversed(REF_SUFFIXES):
        ref.create(f"case{suffix}", suffix.encode() + b"\xff")
        assert read_reference(ref, "case") == f"{suffix}\ufffd"


@pytest.mark.parametrize("suffix", REF_SUFFIXES)
@pytest.mark.parametrize("dangling", [True, False])
def test_a_link_is_neither_read_nor_written(ref: SafeDir, tmp_path: Path, suffix: str, dangling: bool) -> None:
    target = tmp_path / "target"
    if not dangling:
        target.write_text("secret")
    (tmp_path / f"ref/case{suffix}").symlink_to(target)
    with pytest.raises(UnsafePathError, match="symbolic link"):
        References(ref).freeze("case", "new")
    with pytest.raises(UnsafePathError, match="symbolic link"):
        read_reference(ref, "case")
    assert target.exists() != dangling


def test_half_a_reference_is_never_there(ref: SafeDir, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def full(fd: int, data: memoryview) -> int:
        if len(data) < 5:
            raise OSError(28, "No space left on device")
        return write(fd, data[:4])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        References(ref).freeze("case", "some text")
    assert os.listdir(ref.fd) == []


def test_a_link_planted_after_the_start_is_neither_followed_nor_replaced(ref: SafeDir, tmp_path: Path) -> None:
    references = References(ref)
    target = tmp_path / "target"
    target.write_text("secret")
    (tmp_path / "ref/case").symlink_to(target)
    with pytest.raises(UnsafePathError, match="symbolic link"):
        references.freeze("case", "new")
    assert target.read_text() == "secret"


@pytest.mark.parametrize(("scored", "kept"), [({"case"}, b""), (set(), b"answer")])
def test_an_empty_reference_counts_if_its_case_has_a_row(
    ref: SafeDir, tmp_path: Path, scored: set[str], kept: bytes
) -> None:
    """Without a row it may be what a run was killed over: its row would be written after it."""
    (tmp_path / "ref/case").touch()
    References(ref, scored).freeze("case", "answer")
    assert (tmp_path / "ref/case").read_bytes() == kept


@pytest.mark.parametrize("size", [4096, 4097, 300_000])
def test_large_references_come_into_being_whole(ref: SafeDir, tmp_path: Path, size: int) -> None:
    References(ref).freeze("case", "x" * size)
    assert (tmp_path / "ref/case").stat().st_size == size
    assert os.listdir(ref.fd) == ["case"]
