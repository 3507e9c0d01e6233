"""Append-only rows: one write each, torn tails isolated, failures cut off."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hillclimb.errors import WriteError
from pytest_hillclimb.flow.journal import Journal, Line, Scan
from pytest_hillclimb.flow.layout import make_flow
from pytest_hillclimb.flow.safe import SafeDir


@pytest.fixture
def flow(tmp_path: Path) -> SafeDir:
    return make_flow(tmp_path, "flow")


@pytest.fixture
def file(tmp_path: Path, flow: SafeDir) -> Path:
    return tmp_path / "flow/rows.jsonl"


def test_no_file_before_the_first_row(flow: SafeDir, file: Path) -> None:
    journal = Journal(flow, file.name)
    journal.sync()
    assert not file.exists()
    journal.append('{"a": "ü"}')
    journal.append(b"{}")
    journal.sync()
    journal.close()
    assert file.read_bytes() == '{"a": "ü"}\n{}\n'.encode()


def test_each_row_is_one_write(flow: SafeDir, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(flow, file.name)
    write, calls = os.write, []
    monkeypatch.setattr(os, "write", lambda fd, data: (calls.append(bytes(data)), write(fd, data))[1])
    journal.append("{}")
    journal.append('{"long": "' + "x" * 200_000 + '"}')
    assert [len(call) for call in calls] == [3, 200_013]


def test_short_writes_are_completed(flow: SafeDir, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(flow, file.name)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:4]))
    journal.append('{"a": 1}')
    assert file.read_bytes() == b'{"a": 1}\n'


@pytest.mark.parametrize("tail", [b'{"a": 1}', b'{"a', b"\n{", b"\0\0", "ü".encode()[:1]])
def test_torn_tail_is_isolated_once(flow: SafeDir, file: Path, tail: bytes) -> None:
    file.write_bytes(b"{}\n" + tail)
    for _ in range(2):
        Journal(flow, file.name).close()
        assert file.read_bytes() == b"{}\n" + tail + b"\n"


@pytest.mark.parametrize("whole", [b"", b"{}\n", b"\n"])
def test_whole_file_is_left_alone(flow: SafeDir, file: Path, whole: bytes) -> None:
    file.write_bytes(whole)
    Journal(flow, file.name).close()
    assert file.read_bytes() == whole


@pytest.mark.parametrize("line", ["a\nb", b"a\n", "\n"])
def test_a_row_is_a_single_line(flow: SafeDir, line: str | bytes) -> None:
    with pytest.raises(ValueError, match="single line"):
        Journal(flow, "rows.jsonl").append(line)


def test_failing_append_is_cut_off(flow: SafeDir, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(flow, file.name)
    journal.append('{"a": 1}')
    write = os.write

    def full(fd: int, data: memoryview) -> int:
        if len(data) < 10:
            raise OSError(28, "No space left on device")
        return write(fd, data[:-5])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(WriteError, match=r"cannot write flow/rows.jsonl: No space left"):
            journal.append('{"b": "some text"}')
    assert file.read_bytes() == b'{"a": 1}\n'
    journal.append('{"c": 1}')
    assert file.read_bytes() == b'{"a": 1}\n{"c": 1}\n'


def test_what_cannot_be_cut_off_is_isolated(flow: SafeDir, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(flow, file.name)
    journal.append("{}")
    write = os.write

    def failing(fd: int, data: memoryview) -> int:
        if len(data) < 5:
            raise OSError(5, "Input/output error")
        return write(fd, data[:-4])

    def no_cut(fd: int, length: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing)
        patch.setattr(os, "ftruncate", no_cut)
        with pytest.raises(WriteError):
            journal.append('{"b": 1}')
    journal.append('{"c": 1}')
    assert file.read_bytes() == b'{}\n{"b":\n{"c": 1}\n'


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from pytest_hillclimb.errors import WriteError
from pytest_hillclimb.flow.journal import Journal
from pytest_hillclimb.flow.layout import make_flow

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
journal = Journal(make_flow(Path(sys.argv[1]), "flow"), "rows.jsonl")
journal.append("x" * 599)
try:
    journal.append("y" * 599)
except WriteError as error:
    print(error)
journal.append("z" * 99)
"""


def test_a_disk_that_takes_no_more(tmp_path: Path, file: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL_DISK, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "cannot write flow/rows.jsonl: File too large\n"
    assert file.read_bytes() == b"x" * 599 + b"\n" + b"z" * 99 + b"\n"


@pytest.mark.parametrize("when", ["before", "between"])
def test_planted_hard_link_is_a_failed_write(flow: SafeDir, file: Path, tmp_path: Path, when: str) -> None:
    journal = Journal(flow, file.name)
    if when == "between":
        journal.append("{}")
        os.link(file, tmp_path / "other")
    else:
        (tmp_path / "other").write_bytes(b"{}\n")
        os.link(tmp_path / "other", file)
    with pytest.raises(WriteError, match="second hard link"):
        journal.append('{"a": 1}')
    assert (tmp_path / "other").read_bytes() == b"{}\n"


def test_planted_link_is_a_failed_write(flow: SafeDir, file: Path, tmp_path: Path) -> None:
    file.symlink_to(tmp_path / "other")
    with pytest.raises(WriteError, match="symbolic link"):
        Journal(flow, file.name)
    assert not (tmp_path / "other").exists()


def test_deleted_file_is_begun_anew(flow: SafeDir, file: Path) -> None:
    journal = Journal(flow, file.name)
    journal.append("{}")
    file.unlink()
    journal.append('{"a": 1}')
    assert file.read_bytes() == b'{"a": 1}\n'


def test_failing_sync_is_a_failed_write(flow: SafeDir, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(flow, "rows.jsonl")
    journal.append("{}")
    monkeypatch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(WriteError, match="Input/output error"):
        journal.sync()


# Reading


def scan(data: bytes) -> tuple[list[Line], int]:
    found = Scan(io.BytesIO(data))
    return list(found), found.broken


def test_lines_end_at_newlines_only() -> None:
    rows = ['{"a": "x\u2028y"}', '{"a": "x\u2029y"}', '{"a": "x\x85y"}', '{"a": 1}\r']
    lines, broken = scan("\n".join(rows).encode())
    assert [line.row["a"] for line in lines] == ["x\u2028y", "x\u2029y", "x\x85y", 1]
    assert broken == 0


BROKEN = [b"null", b"1", b"[]", b'"x"', b'{"a": NaN}', b'{"a"', b"\xff{}", b"\xef\xbb\xbf{}", b"[" * 100_000, b"\0"]


@pytest.mark.parametrize("line", BROKEN)
def test_broken_lines_are_counted(line: bytes) -> None:
    lines, broken = scan(b'{"a": 1}\n\n  \n' + line + b'\n{"b": 2}')
    assert [row.row for row in lines] == [{"a": 1}, {"b": 2}]
    assert broken == 1


@given(st.lists(st.sampled_from([b"{}", b'{"a": "\xc3\xbc"}', b"", b"broken", b" \r"])))
@settings(derandomize=True, deadline=None)
def test_offsets_lead_back_to_the_rows(pieces: list[bytes]) -> None:
    data = b"\n".join(pieces)
    lines, broken = scan(data)
    assert [data[line.offset :][: line.length].strip() for line in lines] == [p for p in pieces if p.startswith(b"{")]
    assert broken == pieces.count(b"broken")
