"""The digest of the harness: the files that decide what is run and how it is graded.

Pattern: each file enters as its path relative to rootdir (with ``/``), NUL, its bytes, NUL, in the UTF-16 order of the
paths; a listed path that does not exist enters with the word ``missing`` for bytes. CRLF counts as LF in files without
a NUL, so that a checkout on another system has the same digest.

Accepted trade-offs: linked directories inside a listed one are not entered (list their target); code that the harness
imports from elsewhere is only covered if it is listed, installed packages only through the lockfiles.

Scope: a change detector. Whoever can edit the harness can also record an approval.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

from pytest_hillclimb.errors import HarnessError
from pytest_hillclimb.flow.roots import CONFTEST, conftests_below
from pytest_hillclimb.flow.safe import refused

LOCKFILES = (
    "package-lock.json",
    "bun.lock",
    "bun.lockb",
    "yarn.lock",
    "pnpm-lock.yaml",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "requirements*.txt",
    "pylock.toml",
    "pylock.*.toml",
)
"""Patterns of the files that pin dependencies."""


_CACHES = ("__pycache__", ".pytest_cache", ".git")
"""Directories that change with every run or commit, and decide nothing."""


@dataclass(frozen=True)
class Harness:
    """The digest and what it covers; paths are relative to rootdir."""

    sha: str
    files: tuple[str, ...]
    missing: tuple[str, ...]
    """Listed paths that do not exist."""
    has_lockfile: bool
    """False means that a change of dependencies goes unseen."""


def digest_harness(
    *,
    rootdir: Path,
    confcutdir: Path,
    eval_root: Path,
    norecursedirs: Sequence[str],
    catalogs: Iterable[Path] = (),
    extra: Iterable[Path] = (),
    harness_paths: Iterable[str] = (),
    leave_out: Collection[Path] = (),
) -> Harness:
    """Return the digest of the harness of an eval root; all paths are absolute.

    It covers the conftests of the eval root's parents and of everything below it, *catalogs*, *extra*, the lockfiles
    beside all of these and in rootdir, and *harness_paths*.

    :param rootdir: pytest's rootdir; paths are relative to it
    :param confcutdir: pytest's confcutdir; conftests above it are not loaded
    :param eval_root: directory of the eval
    :param norecursedirs: pytest's patterns of directories that it does not enter
    :param catalogs: the catalog files
    :param extra: further files, such as the candidate manifest
    :param harness_paths: listed files and directories, relative to rootdir
    :param leave_out: directories that a listed one may contain and that are not covered, such as the flow
    :raises HarnessError: if a file cannot be read
    """
    files = [*_conftests(eval_root, confcutdir, norecursedirs), *catalogs, *extra]
    lockfiles = [file for directory in {rootdir, *(file.parent for file in files)} for file in _lockfiles(directory)]
    listed = [rootdir / path for path in harness_paths]
    missing = {_relative(path, rootdir) for path in listed if not os.path.exists(path)}
    listed_files = [file for path in listed if os.path.exists(path) for file in _expand(path, leave_out)]
    found = {_relative(path, rootdir): path for path in (*files, *lockfiles, *listed_files)}
    names, gone = sorted(found, key=_utf16), sorted(missing, key=_utf16)
    return Harness(_sha(found, missing), tuple(names), tuple(gone), bool(lockfiles))


def _sha(found: Mapping[str, Path], missing: set[str]) -> str:
    digest = hashlib.sha256()
    for name in sorted({*found, *missing}, key=_utf16):
        content = _content(found[name], name) if name in found else b"missing"
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0" + content + b"\0")
    return digest.hexdigest()


def _conftests(eval_root: Path, confcutdir: Path, norecursedirs: Sequence[str]) -> list[Path]:
    above = [parent / CONFTEST for parent in eval_root.parents if parent not in confcutdir.parents]
    return [*(path for path in above if path.is_file()), *conftests_below(eval_root, norecursedirs)]


def _lockfiles(directory: Path) -> Iterator[Path]:
    with refused(f"cannot look for lockfiles in {directory}", HarnessError):
        names = os.listdir(directory)
    for name in names:
        if any(fnmatchcase(name, pattern) for pattern in LOCKFILES) and (directory / name).is_file():
            yield directory / name


def _expand(path: Path, leave_out: Collection[Path]) -> Iterator[Path]:
    """Yield a listed file, or the regular files below a listed directory."""
    if not path.is_dir():
        yield path
        return
    left_out = {os.path.realpath(directory) for directory in leave_out}
    for folder, subdirectories, names in os.walk(path, onerror=_unlisted):
        subdirectories[:] = [
            name
            for name in subdirectories
            if name not in _CACHES and os.path.realpath(os.path.join(folder, name)) not in left_out
        ]
        yield from (file for name in names if (file := Path(folder, name)).is_file())


def _content(path: Path, name: str) -> bytes:
    with refused(f"cannot read {name}, which belongs to the harness", HarnessError):
        if path.exists() and not path.is_file():
            raise HarnessError(f"{name} belongs to the harness and is no regular file")
        data = path.read_bytes()
    return data if b"\0" in data else data.replace(b"\r\n", b"\n")


def _unlisted(error: OSError) -> NoReturn:
    raise HarnessError(f"cannot list {error.filename}, which belongs to the harness: {error.strerror}") from error


def _relative(path: Path, rootdir: Path) -> str:
    return Path(os.path.relpath(path, rootdir)).as_posix()


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
