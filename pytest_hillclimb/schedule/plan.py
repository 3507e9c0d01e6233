"""The plan of a run, and what a user selects of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.model.case import Case

_LISTED = 20

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Execution:
    """One planned (case, rep). ``order`` is its place in the whole plan."""

    case: Case
    rep: int
    order: int

    @property
    def key(self) -> Key:
        """The slot that its row fills: path-safe id and repetition, from 0."""
        return (self.case.safe_id, self.rep)

    @property
    def label(self) -> str:
        """How messages name it: the case's own id and the repetition."""
        return f"{self.case.id} rep{self.rep}"

    @property
    def file_stem(self) -> str:
        """Name of its trace (without suffix) and of the directory of its artifacts."""
        return f"{self.case.safe_id}_rep{self.rep}"


def plan(cases: Iterable[Case], reps: int) -> list[Execution]:
    """Return every case times every repetition: case order first, then repetitions from 0."""
    pairs = ((case, rep) for case in cases for rep in range(reps))
    return [Execution(case, rep, order) for order, (case, rep) in enumerate(pairs)]


def selected_cases(cases: Sequence[Case], wanted: Sequence[str]) -> frozenset[str] | None:
    """Return the path-safe ids that *wanted* names, as written or path-safe; None when everything is wanted.

    :raises OptionError: for a name that no case has, with the names that exist
    """
    if not wanted:
        return None
    names = {name: case.safe_id for case in cases for name in (case.id, case.safe_id)}
    for name in wanted:
        if name not in names:
            listed = ", ".join(case.id for case in cases[:_LISTED])
            more = f" and {len(cases) - _LISTED} more" if len(cases) > _LISTED else ""
            raise OptionError(f"--hillclimb-case: no case is called {name!r}; there are: {listed}{more}")
    return frozenset(names[name] for name in wanted)
