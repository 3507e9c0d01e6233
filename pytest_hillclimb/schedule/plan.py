"""The plan of a run: its executions, and how they are named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_hillclimb.model.candidate import Candidate
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.ids import path_safe

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Execution:
    """One planned (case, candidate, rep).

    ``order`` is its place in the whole plan. ``candidate`` and ``execution_id`` are None unless the run has a candidate
    manifest.
    """

    case: Case
    rep: int
    order: int
    candidate: Candidate | None = None
    execution_id: str | None = None

    @property
    def prompt_id(self) -> str:
        """The id of its rows and files: that of the case, with a manifest ``<case>.<candidate>``; path-safe."""
        return prompt_id(self.case, self.candidate)

    @property
    def key(self) -> Key:
        """The slot that its row fills: prompt_id and repetition, from 0."""
        return (self.prompt_id, self.rep)

    @property
    def name(self) -> str:
        """Its name below its case, as in node ids."""
        return f"{self.candidate.id}/rep{self.rep}" if self.candidate is not None else f"rep{self.rep}"

    @property
    def label(self) -> str:
        """How messages name it: the case's own id, then candidate and repetition."""
        return f"{self.case.id} {self.name}"

    @property
    def file_stem(self) -> str:
        """Name of its trace (without suffix) and of the directory of its artifacts."""
        return f"{self.prompt_id}_rep{self.rep}"


def prompt_id(case: Case, candidate: Candidate | None) -> str:
    """Return the id that rows, traces and references of a case, as run by a candidate, have on disk."""
    return case.safe_id if candidate is None else path_safe(f"{case.safe_id}.{candidate.id}")


def plan(cases: Iterable[Case], reps: int) -> list[Execution]:
    """Return every case times every repetition: case order first, then repetitions from 0."""
    pairs = ((case, rep) for case in cases for rep in range(reps))
    return [Execution(case, rep, order) for order, (case, rep) in enumerate(pairs)]
