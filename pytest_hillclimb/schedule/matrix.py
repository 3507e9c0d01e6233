"""How candidates meet cases: the plan of a run that has a candidate manifest.

Equal inputs give equal plans and equal execution ids, on every machine.
"""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pytest_hillclimb.catalog.wording import quoted
from pytest_hillclimb.errors import ManifestError, OptionError
from pytest_hillclimb.model.candidate import Candidate, Manifest
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.jsonable import encode
from pytest_hillclimb.schedule.plan import Execution

ScheduleName = Literal["full", "balanced"]

_DIGITS = 16


def matrix_plan(
    cases: Sequence[Case],
    reps: int,
    manifest: Manifest,
    *,
    schedule: ScheduleName,
    rotation: int | None,
    seed: str,
) -> list[Execution]:
    """Return every execution of a run, in the order of cases, then candidates, then repetitions.

    ``full`` lets every case meet every active candidate, *reps* times. ``balanced`` lets it meet those that
    ``manifest.schedule`` pairs it with, which also says which cases have repetitions of their own.

    :param rotation: any integer; None, in the full schedule alone, makes every candidate active
    :param seed: a text that the execution ids depend on
    :raises OptionError: for a balanced schedule without a rotation
    :raises ManifestError: for numbers of ``manifest.schedule`` that give no plan for these cases
    """
    turn = None if rotation is None else manifest.turn(rotation)
    repeats = _repeats(cases, manifest) if schedule == "balanced" else {}
    planned = [
        (case, candidate, rep)
        for case, candidate in meetings(cases, manifest, schedule, turn)
        for rep in range(repeats.get(case.safe_id, reps))
    ]
    identity = f"{seed}:{'full' if turn is None else turn}"
    prefix = manifest.schedule.id_prefix
    executions = [
        Execution(case, rep, order, candidate, prefix + _digest(f"{identity}:{case.safe_id}:{candidate.id}:{rep + 1}"))
        for order, (case, candidate, rep) in enumerate(planned)
    ]
    _refuse_equal_ids(executions)
    return executions


def active_candidates(manifest: Manifest, schedule: ScheduleName, rotation: int | None) -> tuple[Candidate, ...]:
    """Return the candidates that a run can use, in the author's order.

    :param rotation: any integer; None, in the full schedule alone, makes every candidate active
    :raises OptionError: for a balanced schedule without a rotation
    """
    if rotation is not None:
        return manifest.active(manifest.turn(rotation))
    if schedule == "balanced":
        raise OptionError("--hillclimb-schedule balanced needs a rotation: give --hillclimb-rotation")
    return manifest.candidates


def meetings(
    cases: Sequence[Case], manifest: Manifest, schedule: ScheduleName, rotation: int | None
) -> Iterator[tuple[Case, Candidate]]:
    """Return which candidates each case meets in one rotation, without repetitions.

    :raises OptionError: for a balanced schedule without a rotation
    :raises ManifestError: if the pairing would give a case the same candidate twice
    """
    active = active_candidates(manifest, schedule, rotation)
    if schedule == "full" or rotation is None:
        return ((case, candidate) for case in cases for candidate in active)
    _refuse_same_candidate_twice(manifest, len(active))
    turn, rules = manifest.turn(rotation), manifest.schedule
    steps = [step * rules.pair_offset for step in range(rules.candidates_per_case)]
    return ((case, active[(i + turn + step) % len(active)]) for i, case in enumerate(cases) for step in steps)


def _refuse_same_candidate_twice(manifest: Manifest, active: int) -> None:
    rules = manifest.schedule
    offset, wanted = rules.pair_offset, rules.candidates_per_case
    if wanted > active:
        problem = f"candidates_per_case is {wanted}, but a rotation has {active} active, one for each slot"
        raise ManifestError(f"{manifest.source}: schedule.{problem}: write at most {active}, or add slots")
    if _reach(offset, active) < wanted:
        others = range(max(1, offset - active), offset + active + 1)
        works = min((o for o in others if _reach(o, active) >= wanted), key=lambda o: (abs(o - offset), o))
        problem = f"pair_offset is {offset}, which with {active} active candidates gives a case the same one twice"
        raise ManifestError(f"{manifest.source}: schedule.{problem}: write {works}")


def _reach(offset: int, active: int) -> int:
    """Return how many steps of *offset* around a ring of *active* come back to the start."""
    return active // math.gcd(offset, active)


def _repeats(cases: Sequence[Case], manifest: Manifest) -> Mapping[str, int]:
    """Return the repetitions of cases that have some of their own, by path-safe id."""
    safe_ids = {name: case.safe_id for case in cases for name in (case.safe_id, case.id)}
    for name in manifest.schedule.repeats:
        if name not in safe_ids:
            nearest = difflib.get_close_matches(name, safe_ids, n=1)
            hint = f"did you mean {quoted(nearest[0])}?" if nearest else "write the id of a case, or leave it out"
            raise ManifestError(f"{manifest.source}: schedule.repeats: no case is called {quoted(name)}; {hint}")
    return {safe_ids[name]: count for name, count in manifest.schedule.repeats.items()}


def _digest(identity: str) -> str:
    return hashlib.sha256(encode(identity)).hexdigest()[:_DIGITS]


def _refuse_equal_ids(executions: Sequence[Execution]) -> None:
    owners: dict[str | None, Execution] = {}
    for execution in executions:
        owner = owners.setdefault(execution.execution_id, execution)
        if owner is not execution:
            both = f"{quoted(owner.label)} and {quoted(execution.label)}"
            raise ManifestError(f"{both} have the same execution id, {execution.execution_id}: give another seed")
