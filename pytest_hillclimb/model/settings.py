"""The resolved options of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MAIN, CHAOS, NULL, ORACLE = "main", "chaos", "null", "oracle"
PROBES = (NULL, ORACLE)
"""The lanes that check the grader, in which the app is not called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run was asked to do. Paths are absolute but for ``flow``, which is as the user gave it.

    ``flow_base`` is the directory that a relative ``flow`` starts from; ``timeout`` is in seconds, 0 for no ceiling;
    ``rotation`` is resolved to a number, None where all candidates are active; ``max_cost`` and ``trial_cost`` are in
    US dollars, None for none; ``lane`` is main, chaos, null or oracle.
    """

    flow: str
    flow_base: Path
    variant: str = "baseline"
    model: str | None = None
    reps: int = 1
    concurrency: int = 4
    timeout: float = 1800.0
    approve_harness: bool = False
    plan: bool = False
    fresh: bool = False
    fail_on: str = "grade"
    candidates: Path | None = None
    candidate: tuple[str, ...] = ()
    case: tuple[str, ...] = ()
    limit: int | None = None
    schedule: Literal["full", "balanced"] = "full"
    rotation: int | None = None
    seed: str = "hillclimb-v1"
    require_qualified: bool = False
    max_cost: float | None = None
    trial_cost: float | None = None
    lane: str = MAIN
    canary: int | None = None
    max_trace_bytes: int = 64 * 1024 * 1024

    @property
    def flow_path(self) -> Path:
        """Where the flow directory is, for showing."""
        return self.flow_base / self.flow

    @property
    def records(self) -> str:
        """The flow directory that rows go to, as ``flow``: a sibling of it in any lane but main."""
        return self._records(self.lane)

    @property
    def records_path(self) -> Path:
        """Where rows go, for showing."""
        return self.flow_base / self.records

    @property
    def all_records(self) -> tuple[Path, ...]:
        """Where the rows of every lane go."""
        return tuple(self.flow_base / self._records(lane) for lane in (MAIN, CHAOS, *PROBES))

    @property
    def is_baseline(self) -> bool:
        """Whether this run measures the baseline, the variant that freezes references."""
        return self.variant == "baseline"

    def _records(self, lane: str) -> str:
        return self.flow if lane == MAIN else f"{self.flow.rstrip('/')}.{lane}"
