"""Frozen references: written once, whole, and read through no link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.errors import UnsafePathError
from pytest_hillclimb.flow.layout import make_flow
from pytest_hillclimb.flow.references import REF_SUFFIXES, freeze_reference, read_reference
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
    assert freeze_reference(ref, "case", output)
    assert not freeze_reference(ref, "case", "another")
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
        freeze_reference(ref, "case", "new")
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
        freeze_reference(ref, "case", "some text")
    assert os.listdir(ref.fd) == []
