"""Candidates: the models or agents under test, in the slots of a matrix, each with what it needs and may use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

MAX_CANDIDATE_ID = 40
MAX_SLOT_ID = 200
MAX_PREFIX = 40
MAX_CYCLE = 1000
MAX_REPEATS = 10_000

_ID = "^[A-Za-z0-9][A-Za-z0-9._-]*$"

# Numbers are strict, so that no text and no true or false is taken for one.
Count = Annotated[int, Field(ge=1, strict=True)]
SlotId = Annotated[str, Field(pattern=_ID, max_length=MAX_SLOT_ID)]
CandidateId = Annotated[str, Field(pattern=_ID, max_length=MAX_CANDIDATE_ID)]
EnvName = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
Text = Annotated[str, Field(pattern=r"\S")]

_STRICT = ConfigDict(frozen=True, extra="forbid")


class Qualification(BaseModel):
    """What a candidate needs before it can be run.

    ``required_env`` names environment variables that must be set and not empty; ``profile`` is free text for the
    harness.
    """

    model_config = _STRICT

    required_env: tuple[EnvName, ...] = ()
    profile: str | None = None


class Budget(BaseModel):
    """What one execution of a candidate may use; a limit that is absent does not limit.

    ``max_latency_ms`` (milliseconds) and ``max_attempts`` bound the trial while it runs. ``max_cost_usd`` (US dollars,
    0 for no paid use at all) and ``max_total_tokens`` are judged on the usage of the scored attempt; exactly at a limit
    is within it.
    """

    model_config = _STRICT

    max_latency_ms: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)] | None = None
    max_attempts: Count | None = None
    max_cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)] | None = None
    max_total_tokens: Count | None = None


class Candidate(BaseModel):
    """One model or agent under test.

    ``slot_id`` is the slot that it was listed in. ``adapter``, ``provider``, ``tier`` and ``reasoning_effort`` are free
    text, ``settings`` is anything; the harness reads them from ``ctx.candidate``.
    """

    model_config = _STRICT

    id: CandidateId
    slot_id: SlotId
    model: Text
    adapter: str | None = None
    provider: str | None = None
    tier: str | None = None
    reasoning_effort: str | None = None
    settings: Mapping[str, Any] = {}
    qualification: Qualification = Qualification()
    budget: Budget = Budget()


class Slot(BaseModel):
    """A place in the matrix that one of its candidates fills, by rotation; ``phase`` shifts its turn."""

    model_config = _STRICT

    id: SlotId
    candidates: Annotated[tuple[Candidate, ...], Field(min_length=1)]
    phase: Annotated[int, Field(strict=True)] = 0

    def filled_by(self, turn: int) -> Candidate:
        """Return the candidate whose turn it is."""
        return self.candidates[(turn + self.phase) % len(self.candidates)]


class ScheduleRules(BaseModel):
    """The numbers of the balanced schedule.

    Case number ``i`` meets the active candidates ``(i + rotation + j * pair_offset) mod n`` for ``j`` below
    ``candidates_per_case``. ``repeats`` gives the repetitions of single cases by their id; the others have those of
    ``--hillclimb-reps``. ``cycle`` is the number of rotations after which all begins anew; ``id_prefix`` starts every
    execution id, in the full schedule too.
    """

    model_config = _STRICT

    pair_offset: Count = 3
    candidates_per_case: Count = 2
    repeats: Mapping[str, Annotated[int, Field(ge=1, le=MAX_REPEATS, strict=True)]] = {}
    cycle: Annotated[int, Field(ge=1, le=MAX_CYCLE, strict=True)] = 7
    id_prefix: Annotated[str, Field(pattern="^[A-Za-z0-9._-]*$", max_length=MAX_PREFIX)] = "rwe-"


class Manifest(BaseModel):
    """The candidates of a matrix by slot, and the numbers of its schedule; ``source`` is how messages name its file."""

    model_config = _STRICT

    slots: Annotated[tuple[Slot, ...], Field(min_length=1)]
    schedule: ScheduleRules = ScheduleRules()
    source: str = "candidate manifest"

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every candidate, in the author's order."""
        return tuple(candidate for slot in self.slots for candidate in slot.candidates)

    @cached_property
    def required_env(self) -> frozenset[str]:
        """The names that any candidate requires."""
        return frozenset(name for c in self.candidates for name in c.qualification.required_env)

    def turn(self, rotation: int) -> int:
        """Return the place in the cycle of a rotation, which may be any integer."""
        return rotation % self.schedule.cycle

    def active(self, turn: int) -> tuple[Candidate, ...]:
        """Return the candidate of each slot whose turn it is, in slot order."""
        return tuple(slot.filled_by(turn) for slot in self.slots)
