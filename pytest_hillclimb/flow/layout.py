"""The directories of a flow, each opened once and held.

Pattern: ``find`` and ``make`` take the names below the flow root (``find("baseline", "ref")``) and keep the descriptor,
so that many writes a second do not walk the path again, and all of them go where the first one went.

Accepted trade-offs: one descriptor stays open per directory until ``close``; directories that come one per execution,
such as ``out/<id>_rep<k>``, are therefore opened from their held parent and closed after use. ``preflight`` looks at
what is there at that moment; every later open looks again.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from pytest_hillclimb.errors import RefusedError, UnsafePathError
from pytest_hillclimb.flow.safe import DIRECTORY, SUPPORTED, SafeDir, refused

STATE = "_state.json"
RESULTS = "results.jsonl"
ERRORS = "errors.jsonl"
RUN = "run.json"
SUMMARY = "summary.json"
PROGRESS = "progress.txt"
LOCK = ".lock"
BASELINE = "baseline"
REF = "ref"
TRACES = "traces"
OUT = "out"

_VARIANT_FILES = (RESULTS, ERRORS, PROGRESS, RUN, SUMMARY, LOCK)
_VARIANT_DIRS = (TRACES, OUT)


class FlowDir:
    """A flow directory and the directories below it, opened when first asked for.

    :param base: directory that a relative path starts from
    :param given: path of the flow as the user gave it
    """

    def __init__(self, base: Path, given: str) -> None:
        self.base = base
        self.given = given
        self._held: dict[tuple[str, ...], SafeDir] = {}

    @property
    def path(self) -> Path:
        """The flow as a path for people and for other tools; nothing here is opened by it."""
        return self.base / self.given

    def find(self, *names: str) -> SafeDir | None:
        """Return the directory below the flow root (the root itself without names), or None when it does not exist.

        :raises UnsafePathError: if a component is a link or no directory
        :raises RefusedError: if the system does not let it be opened
        """
        if names not in self._held:
            with self._refused("open", names):
                found = self._look(names)
            if found is None:
                return None
            self._held[names] = found
        return self._held[names]

    def make(self, *names: str) -> SafeDir:
        """Return the directory below the flow root, made (and its parents) when absent; errors as in :meth:`find`."""
        if names not in self._held:
            with self._refused("make", names):
                self._held[names] = self._make(names)
        return self._held[names]

    def preflight(self, variant: str) -> None:
        """Look at every place that a run of *variant* uses, creating none.

        :raises UnsafePathError: naming the first link, hard link or thing of a wrong kind
        """
        with self._refused("look into", ()):
            root = self.find()
            if root is None:
                return
            root.check(STATE)
            if self.find(BASELINE) is not None:
                self.find(BASELINE, REF)
            directory = self.find(variant)
            if directory is not None:
                for name in _VARIANT_DIRS:
                    self.find(variant, name)
                for name in _VARIANT_FILES:
                    directory.check(name)

    def moved(self, variant: str) -> str | None:
        """Return a warning if the directory that is held for *variant* is no longer the one at its path, else None."""
        held = self._held.get((variant,))
        if held is None:
            return None
        with FlowDir(self.base, self.given) as fresh:
            try:
                now = fresh.find(variant)
            except RefusedError as error:
                return f"what was written during the run went to a directory that was moved away: {error.message}"
            if now is not None and os.path.samestat(os.fstat(held.fd), os.fstat(now.fd)):
                return None
        return f"{held.shown} was moved or replaced during the run; what was written went to the directory of before"

    def close(self) -> None:
        """Close every directory that is held."""
        while self._held:
            self._held.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _look(self, names: tuple[str, ...]) -> SafeDir | None:
        if not names:
            return open_flow(self.base, self.given)
        parent = self.find(*names[:-1])
        return parent and parent.open_dir(names[-1])

    def _make(self, names: tuple[str, ...]) -> SafeDir:
        return self.make(*names[:-1]).make_dir(names[-1]) if names else make_flow(self.base, self.given)

    def _refused(self, verb: str, names: tuple[str, ...]) -> AbstractContextManager[None]:
        return refused(f"cannot {verb} the directory {os.path.join(self.given, *names)}")


def open_flow(base: Path, given: str) -> SafeDir | None:
    """Return the flow directory, or None when it does not exist.

    The ancestors of an absolute path are trusted, because the caller spelled them out; of a relative path only *base*
    is, and no component below it may be a link.

    :param base: directory that a relative path starts from
    :param given: the path as the user gave it
    :raises UnsafePathError: if the path cannot be used, or holds a link where none may be
    :raises RefusedError: if the system lacks descriptor-bound access, or refuses it
    """
    anchor, shown, names = _route(base, given)
    with refused(f"cannot open the flow directory {given}"):
        try:
            current = SafeDir(os.open(anchor, DIRECTORY), shown)
        except FileNotFoundError:
            return None
        for name in names:
            with current:
                following = current.open_dir(name)
            if following is None:
                return None
            current = following
        return current


def make_flow(base: Path, given: str) -> SafeDir:
    """Return the flow directory, made when absent; parameters and errors as in :func:`open_flow`."""
    anchor, shown, names = _route(base, given)
    with refused(f"cannot make the flow directory {given}"):
        os.makedirs(anchor, exist_ok=True)
        current = SafeDir(os.open(anchor, DIRECTORY), shown)
        for name in names:
            with current:
                current = current.make_dir(name)
        return current


def _route(base: Path, given: str) -> tuple[str, str, list[str]]:
    """Return the trusted directory to start from, the path to show for it, and the components to walk."""
    if not SUPPORTED:
        raise RefusedError("this system cannot open files relative to a directory: a flow needs Linux or macOS")
    # Without its empty segments the path has no trailing slash, with which a link would be followed.
    names = [name for name in given.split("/") if name]
    if not names:
        raise UnsafePathError(f"{given!r} cannot be a flow directory; name a directory below it", path=given)
    for name in names:
        if name in (".", ".."):
            raise UnsafePathError(f"the flow directory {given} must not have a '{name}' segment", path=given)
    if given.startswith("/"):
        parent = "/" + "/".join(names[:-1])
        return parent, parent, names[-1:]
    return str(base), "", names
