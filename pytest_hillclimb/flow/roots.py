"""Eval roots: the directories whose conftest implements a hook of this plugin, and the files below them.

They are found before any conftest is imported, so by the bytes of ``conftest.py`` alone.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

MARKER = b"pytest_hillclimb_"
"""What the conftest of an eval root has in its bytes: the common start of the hooks' names."""

CONFTEST = "conftest.py"


def is_eval_root(directory: Path) -> bool:
    """Return whether the conftest of *directory* names a hook of this plugin."""
    conftest = directory / CONFTEST
    try:
        return conftest.is_file() and MARKER in conftest.read_bytes()
    except OSError:  # pytest reports a conftest that it cannot read
        return False


def outermost_eval_root(start: Path, stop: Path) -> Path | None:
    """Return the outermost eval root among *start* and its parents, or None.

    :param start: directory to climb from
    :param stop: the last directory to look at (``confcutdir``); if *start* does not lie below it, only *start* is
    """
    found = None
    for directory in (start, *start.parents) if start.is_relative_to(stop) else (start,):
        if is_eval_root(directory):
            found = directory
        if directory == stop:
            break
    return found


def search_eval_roots(start: Path, norecursedirs: Sequence[str]) -> list[Path]:
    """Return the outermost eval roots at and below *start*, sorted; parameters as in :func:`catalog_files`."""
    found = []
    for directory, subdirectories, _ in _walk(start, norecursedirs):
        if is_eval_root(directory):
            found.append(directory)
            subdirectories.clear()
    return found


def catalog_files(root: Path, names: Collection[str], norecursedirs: Sequence[str]) -> list[Path]:
    """Return the files at and below *root* that have one of *names*, directory by directory, sorted.

    :param root: where to start
    :param names: file names
    :param norecursedirs: pytest's patterns of directories to stay out of; virtual environments and linked directories
        are left out too
    """
    walk = _walk(root, norecursedirs)
    return [directory / name for directory, _, files in walk for name in files if name in names]


def conftests_below(root: Path, norecursedirs: Sequence[str]) -> list[Path]:
    """Return the conftests at and below *root*; parameters as in :func:`catalog_files`."""
    return catalog_files(root, (CONFTEST,), norecursedirs)


def _walk(start: Path, norecursedirs: Sequence[str]) -> Iterator[tuple[Path, list[str], list[str]]]:
    for folder, subdirectories, files in os.walk(start):
        directory = Path(folder)
        subdirectories[:] = sorted(name for name in subdirectories if not _skipped(directory / name, norecursedirs))
        yield directory, subdirectories, sorted(name for name in files if (directory / name).is_file())


def _skipped(directory: Path, norecursedirs: Sequence[str]) -> bool:
    if any(_matches(pattern, directory) for pattern in norecursedirs):
        return True
    return (directory / "pyvenv.cfg").is_file() or (directory / "conda-meta" / "history").is_file()


def _matches(pattern: str, directory: Path) -> bool:
    """Match as pytest does: a pattern with a slash against the end of the path, any other against the name."""
    if "/" not in pattern:
        return fnmatch(directory.name, pattern)
    return fnmatch(str(directory), pattern if pattern.startswith("/") else f"*/{pattern}")
