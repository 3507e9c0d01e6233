"""Eval roots and the digest of the harness."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.errors import HarnessError
from pytest_hillclimb.flow.harness import Harness, digest_harness
from pytest_hillclimb.flow.roots import (
    catalog_files,
    conftests_below,
    is_eval_root,
    outermost_eval_root,
    search_eval_roots,
)

HOOK = "def pytest_hillclimb_run_case(case): ...\n"
NORECURSE = ["*.egg", ".*", "build", "dist", "node_modules", "venv", "{arch}"]


def write(path: Path, content: str | bytes = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def digest(root: Path, **options: Any) -> Harness:
    defaults = {"rootdir": root, "confcutdir": root, "eval_root": root / "evals", "norecursedirs": NORECURSE}
    return digest_harness(**{**defaults, **options})


def by_formula(root: Path, *names: str, **contents: bytes) -> str:
    data = b"".join(
        name.encode() + b"\0" + (contents.get(name) or (root / name).read_bytes()) + b"\0" for name in names
    )
    return hashlib.sha256(data).hexdigest()


# Eval roots


def test_eval_root_is_told_by_the_bytes_of_its_conftest(tmp_path: Path) -> None:
    write(tmp_path / "evals/conftest.py", b"\xff\xfe # pytest_hillclimb_run_case")
    write(tmp_path / "other/conftest.py", "import pytest\n")
    (tmp_path / "odd/conftest.py").mkdir(parents=True)
    assert is_eval_root(tmp_path / "evals")
    assert not any(is_eval_root(tmp_path / name) for name in ("other", "odd", "absent"))


def test_climb_to_the_outermost(tmp_path: Path) -> None:
    for directory in ("", "a", "a/b/c"):
        write(tmp_path / directory / "conftest.py", HOOK)
    start = tmp_path / "a/b/c/d"
    start.mkdir()
    assert outermost_eval_root(start, tmp_path) == tmp_path
    assert outermost_eval_root(start, tmp_path / "a") == tmp_path / "a"
    assert outermost_eval_root(start, tmp_path / "a/b") == tmp_path / "a/b/c"
    assert outermost_eval_root(start, start) is None
    assert outermost_eval_root(tmp_path / "a", tmp_path / "elsewhere") == tmp_path / "a"
    assert outermost_eval_root(tmp_path / "a/b", tmp_path / "elsewhere") is None


def test_search_below(tmp_path: Path) -> None:
    for directory in ("b", "b/inner", "a/x", ".hidden", "venv", "sub/build", "env", "conda", "deep/old/evals"):
        write(tmp_path / directory / "conftest.py", HOOK)
    write(tmp_path / "env/pyvenv.cfg")
    write(tmp_path / "conda/conda-meta/history")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    found = search_eval_roots(tmp_path, NORECURSE)
    assert found == [tmp_path / "a/x", tmp_path / "b", tmp_path / "deep/old/evals"]
    assert search_eval_roots(tmp_path, [*NORECURSE, "deep/old"]) == found[:2]
    assert search_eval_roots(tmp_path / "b", NORECURSE) == [tmp_path / "b"]


def test_catalogs_and_conftests_below(tmp_path: Path) -> None:
    for name in ("catalog.yaml", "z/catalog.csv", "a/catalog.yaml", "a/other.yaml", "build/catalog.yaml"):
        write(tmp_path / name)
    write(tmp_path / "a/conftest.py")
    write(tmp_path / "conftest.py")
    names = ["catalog.yaml", "catalog.csv"]
    expected = [tmp_path / name for name in ("catalog.yaml", "a/catalog.yaml", "z/catalog.csv")]
    assert catalog_files(tmp_path, names, NORECURSE) == expected
    assert conftests_below(tmp_path, NORECURSE) == [tmp_path / "conftest.py", tmp_path / "a/conftest.py"]


# The digest


def test_golden_digest(tmp_path: Path) -> None:
    write(tmp_path / "conftest.py", "top = 1\n")
    write(tmp_path / "evals/conftest.py", HOOK)
    catalog = write(tmp_path / "evals/catalog.yaml", "- id: ü\r\n")
    write(tmp_path / "evals/uv.lock", "lock")
    write(tmp_path / "graders/\uffee.bin", b"\0\r\n")
    write(tmp_path / "graders/\U0001f600.txt", "sorts before, by UTF-16 units")
    write(tmp_path / "graders/__pycache__/x.pyc", "noise")
    found = digest(tmp_path, catalogs=[catalog, catalog], harness_paths=["graders", "gone.py", "evals/conftest.py"])
    names = (
        "conftest.py",
        "evals/catalog.yaml",
        "evals/conftest.py",
        "evals/uv.lock",
        "gone.py",
        "graders/\U0001f600.txt",
        "graders/\uffee.bin",
    )
    normal = {"evals/catalog.yaml": "- id: ü\n".encode(), "gone.py": b"missing"}
    assert found.sha == by_formula(tmp_path, *names, **normal)
    assert found.files == tuple(name for name in names if name != "gone.py")
    assert (found.missing, found.has_lockfile) == (("gone.py",), True)


GRADER = 'def grade(case, run):\n    """Exact match."""\n    return run == case\n'


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (GRADER.replace("\n", "\r\n"), True),
        (GRADER.replace("==", "!="), False),
        (GRADER.replace("Exact ", "Exact\r"), False),
    ],
)
def test_line_endings(tmp_path: Path, other: str, same: bool) -> None:
    write(tmp_path / "evals/conftest.py", HOOK)
    grader = write(tmp_path / "grader.py", GRADER)
    before = digest(tmp_path, harness_paths=["grader.py"])
    write(grader, other)
    assert (digest(tmp_path, harness_paths=["grader.py"]) == before) is same


def test_adding_removing_and_renaming_changes_the_sha(tmp_path: Path) -> None:
    write(tmp_path / "evals/conftest.py", HOOK)
    write(tmp_path / "lib/a.py", "a")
    shas = [digest(tmp_path, harness_paths=["lib"]).sha]
    write(tmp_path / "lib/sub/b.py", "b")
    shas.append(digest(tmp_path, harness_paths=["lib"]).sha)
    (tmp_path / "lib/a.py").rename(tmp_path / "lib/c.py")
    shas.append(digest(tmp_path, harness_paths=["lib"]).sha)
    (tmp_path / "lib/c.py").unlink()
    shas.append(digest(tmp_path, harness_paths=["lib"]).sha)
    assert len(set(shas)) == 4


def test_conftests_that_pytest_loads(tmp_path: Path) -> None:
    for directory in ("", "p", "p/evals", "p/evals/sub", "p/evals/build", "p/other"):
        write(tmp_path / directory / "conftest.py", HOOK)
    root = tmp_path / "p"
    inner = ("conftest.py", "evals/conftest.py", "evals/sub/conftest.py")
    assert digest(root).files == inner
    assert digest(root, confcutdir=tmp_path).files == ("../conftest.py", *inner)
    assert digest(root, confcutdir=root / "evals").files == inner[1:]


@pytest.mark.parametrize(
    "name", ["Pipfile.lock", "requirements-dev.txt", "pylock.toml", "pylock.dev.toml", "bun.lockb"]
)
@pytest.mark.parametrize("where", ["", "evals", "models"])
def test_lockfiles(tmp_path: Path, name: str, where: str) -> None:
    write(tmp_path / "evals/conftest.py", HOOK)
    manifest = write(tmp_path / "models/candidates.yaml")
    write(tmp_path / "elsewhere" / name)
    assert not digest(tmp_path, extra=[manifest]).has_lockfile
    write(tmp_path / where / name)
    found = digest(tmp_path, extra=[manifest])
    assert found.has_lockfile
    assert os.path.join(where, name) in found.files


def test_linked_files_are_followed_and_linked_directories_are_not(tmp_path: Path) -> None:
    write(tmp_path / "evals/conftest.py", HOOK)
    write(tmp_path / "shared/x.py")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/file.py").symlink_to(tmp_path / "shared/x.py")
    (tmp_path / "lib/up").symlink_to(tmp_path)
    (tmp_path / "lib/dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "lib/fifo")
    (tmp_path / "listed").symlink_to(tmp_path / "shared")
    found = digest(tmp_path, harness_paths=["lib", "listed"])
    assert found.files == ("evals/conftest.py", "lib/file.py", "listed/x.py")


def test_the_flow_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "evals/conftest.py", HOOK)
    write(tmp_path / "evals/flow/baseline/results.jsonl", "{}")
    found = digest(tmp_path, harness_paths=["evals"], leave_out=[tmp_path / "evals/../evals/flow"])
    assert found.files == ("evals/conftest.py",)


def test_listed_path_that_is_no_file(tmp_path: Path) -> None:
    write(tmp_path / "evals/conftest.py", HOOK)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(HarnessError, match="fifo belongs to the harness and is no regular file"):
        digest(tmp_path, harness_paths=["fifo"])


def test_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "evals/conftest.py", HOOK)
    write(tmp_path / "grader.py")

    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(HarnessError, match=r"cannot read .*, which belongs to the harness: Permission denied"):
        digest(tmp_path, harness_paths=["grader.py"])


def test_absent_manifest_is_named(tmp_path: Path) -> None:
    write(tmp_path / "evals/conftest.py", HOOK)
    with pytest.raises(HarnessError, match=r"cannot read candidates.yaml, .*: No such file"):
        digest(tmp_path, extra=[tmp_path / "candidates.yaml"])
