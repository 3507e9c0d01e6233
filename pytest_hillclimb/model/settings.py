"""The resolved options of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run was asked to do. Paths are absolute but for ``flow``, which is as the user gave it.

    ``flow_base`` is the directory that a relative ``flow`` starts from; ``timeout`` is in seconds, 0 for no ceiling;
    ``rotation`` is resolved to a number, None where all candidates are active; ``max_cost`` and ``trial_cost`` are in
    US dollars, None for none.
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
    lane: str = "main"

    @property
    def flow_path(self) -> Path:
        """Where the flow directory is, for showing."""
        return self.flow_base / self.flow

    @property
    def is_baseline(self) -> bool:
        """Whether this run measures the baseline, the variant that freezes references."""
        return self.variant == "baseline"
