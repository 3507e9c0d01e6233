"""What a cycle of the balanced schedule covers, and what it never brings together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pytest_hillclimb.model.candidate import Candidate, Manifest
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.schedule.matrix import ScheduleName, meetings


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What the rotations of one cycle come to. Slots and candidates count as used where a case meets them.

    ``gaps`` has the cases that never meet some candidates, by their own id, with the ids of those candidates;
    ``unmet_slots`` the pairs of slots that no case meets in the same rotation, so that their candidates are never
    compared side by side. Tiers are those that the manifest names.
    """

    rotations: int
    every_slot_each_rotation: bool
    every_tier_each_rotation: bool
    every_candidate_in_cycle: bool
    every_case_meets_every_slot: bool
    every_case_meets_every_candidate: bool
    gaps: Mapping[str, tuple[str, ...]]
    unmet_slots: tuple[tuple[str, str], ...]


def coverage(
    cases: Sequence[Case], manifest: Manifest, schedule: ScheduleName = "balanced", *, rotates: bool = True
) -> Coverage:
    """Return what a schedule covers in one cycle. Repetitions and seed make no difference.

    :param rotates: whether candidates take turns; without, in the full schedule alone, all are active at once
    :raises ManifestError: if the schedule would give a case the same candidate twice
    """
    turns = range(manifest.schedule.cycle) if rotates else [None]
    rotations = [_met(cases, manifest, schedule, turn) for turn in turns]
    used = [[candidate for found in met.values() for candidate in found] for met in rotations]
    by_case = {case.id: [candidate for met in rotations for candidate in met[case.id]] for case in cases}
    slots = [slot.id for slot in manifest.slots]
    ids = [candidate.id for candidate in manifest.candidates]
    gaps = {id_: _missing(ids, (candidate.id for candidate in found)) for id_, found in by_case.items()}
    tiers = {candidate.tier for candidate in manifest.candidates if candidate.tier is not None}
    together = {
        pair for met in rotations for found in met.values() for pair in combinations({c.slot_id for c in found}, 2)
    }
    return Coverage(
        rotations=len(rotations),
        every_slot_each_rotation=not any(_missing(slots, (c.slot_id for c in found)) for found in used),
        every_tier_each_rotation=all(tiers <= {c.tier for c in found} for found in used),
        every_candidate_in_cycle=not _missing(ids, (c.id for found in used for c in found)),
        every_case_meets_every_slot=not any(_missing(slots, (c.slot_id for c in found)) for found in by_case.values()),
        every_case_meets_every_candidate=not any(gaps.values()),
        gaps={id_: missed for id_, missed in gaps.items() if missed},
        unmet_slots=tuple((a, b) for a, b in combinations(slots, 2) if not together & {(a, b), (b, a)}),
    )


def _met(
    cases: Sequence[Case], manifest: Manifest, schedule: ScheduleName, turn: int | None
) -> dict[str, list[Candidate]]:
    """Return the candidates that each case meets in one rotation, by the case's own id."""
    met: dict[str, list[Candidate]] = {case.id: [] for case in cases}
    for case, candidate in meetings(cases, manifest, schedule, turn):
        met[case.id].append(candidate)
    return met


def _missing(wanted: Iterable[str], found: Iterable[str]) -> tuple[str, ...]:
    there = set(found)
    return tuple(name for name in wanted if name not in there)
