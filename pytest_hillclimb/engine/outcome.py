"""What a trial ended as. Everything that the recorder and the reports need, and nothing that holds on to the trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pytest_hillclimb.model.rows import Row
from pytest_hillclimb.schedule.plan import Key

COMPLETED, CANDIDATE_FAILURE = "completed", "candidate_failure"
INFRASTRUCTURE_FAILURE, SKIPPED = "infrastructure_failure", "skipped"
"""The four classes of outcomes, which are kept apart in rows, reports and counts."""


class Kind(StrEnum):
    """How an execution ended."""

    SCORED = "scored"
    FAILED = "failed"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    EXIT = "exit"


@dataclass(frozen=True, slots=True)
class Signal:
    """A test outcome that user code asked for by raising it: skip, expected failure, or the end of the session."""

    kind: Kind
    reason: str
    returncode: int | None = None


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The one outcome of an execution.

    ``row`` is a results row when ``kind`` is scored; otherwise it is an errors row, or None when nothing is to be
    written. ``transcript``, ``output`` and ``attachments`` are for the recorder alone and are dropped once recorded.
    Times are in seconds; ``started`` is wall-clock. ``charged``, and ``judged`` as the judge's part of it, are in USD,
    0 without a campaign ceiling; ``withheld`` says that the ceiling kept the execution from being started. ``recorded``
    says that it is on disk, ``earlier`` that it was so before this session.
    """

    key: Key
    label: str
    file_stem: str
    kind: Kind
    row: Row | None = None
    passed: bool | None = None
    reason: str = ""
    transcript: list[Any] | None = None
    output: Any = None
    attachments: Mapping[str, bytes] = field(default_factory=dict)
    place: list[str] = field(default_factory=list)
    said: Mapping[str, str] = field(default_factory=dict)
    started: float = 0.0
    duration: float = 0.0
    charged: float = 0.0
    judged: float = 0.0
    withheld: bool = False
    stops_run: bool = False
    returncode: int | None = None
    recorded: bool = False
    has_trace: bool = False
    earlier: bool = False

    @property
    def failure_class(self) -> str | None:
        """The class of a failed execution, None for any other."""
        return self.row["failure_class"] if self.kind is Kind.FAILED and self.row else None

    @property
    def classification(self) -> str:
        """The class: completed, candidate_failure, infrastructure_failure (every errors row) or skipped (no row)."""
        if self.kind is Kind.SCORED:
            return CANDIDATE_FAILURE if self.passed is False else COMPLETED
        return SKIPPED if self.row is None else INFRASTRUCTURE_FAILURE

    @property
    def stop_reason(self) -> str | None:
        """Why no other trial of the run can do better, None for nearly every outcome."""
        if not self.stops_run or self.row is None:
            return None
        cause = f" ({self.row['cause']})" if "cause" in self.row else ""
        return f"{self.failure_class}: {self.row['error']}{cause}"

    def is_red(self, fail_on: str) -> bool:
        """Return whether the outcome turns its item red.

        :param fail_on: ``grade``, ``error``, or ``pass`` in a check of the grader, which an empty answer must not pass
        """
        if self.kind is Kind.FAILED:
            return True
        return (self.passed is False and fail_on == "grade") or (self.passed is True and fail_on == "pass")
