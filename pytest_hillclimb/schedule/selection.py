"""What a user selects of a plan: by candidate, by case, and the first so many of what is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_hillclimb.catalog.wording import quoted
from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.model.candidate import Candidate, Manifest
from pytest_hillclimb.schedule.plan import Execution

_LISTED = 20


def select(
    executions: Sequence[Execution],
    *,
    candidates: Sequence[str] = (),
    cases: Sequence[str] = (),
    limit: int | None = None,
    manifest: Manifest | None = None,
    active: Sequence[Candidate] = (),
) -> list[Execution]:
    """Return the executions of a whole plan that a user asked for, in its order.

    :param candidates: ids of candidates; none for all
    :param cases: ids of cases as written or path-safe; none for all
    :param limit: keep only the first so many; None for all
    :param manifest: the manifest of the plan, None without one
    :param active: the candidates that are active in the plan
    :raises OptionError: for a name that does not exist, with those that do; for a selection that holds nothing
    """
    if limit is not None and limit < 1:
        raise OptionError(f"--hillclimb-limit: expected a whole number from 1, got {limit}")
    _check_candidates(candidates, manifest, active)
    safe_ids = _safe_ids(executions, cases)
    kept = [
        execution
        for execution in executions
        if (not candidates or (execution.candidate is not None and execution.candidate.id in candidates))
        and (not cases or execution.case.safe_id in safe_ids)
    ]
    if not kept:
        raise OptionError(_nothing(candidates, cases))
    return kept[:limit]


def _check_candidates(wanted: Sequence[str], manifest: Manifest | None, active: Sequence[Candidate]) -> None:
    if wanted and manifest is None:
        raise OptionError(
            f"--hillclimb-candidate {quoted(wanted[0])} needs a candidate manifest: give --hillclimb-candidates FILE"
        )
    known = [candidate.id for candidate in manifest.candidates] if manifest is not None else []
    usable = [candidate.id for candidate in active]
    for name in wanted:
        if name not in known:
            problem = f"no candidate is called {quoted(name)}; there are: {_listed(known)}"
            raise OptionError(f"--hillclimb-candidate: {problem}")
        if name not in usable:
            problem = f"{quoted(name)} is not active in this rotation; active are: {_listed(usable)}"
            raise OptionError(f"--hillclimb-candidate: {problem}")


def _safe_ids(executions: Sequence[Execution], wanted: Iterable[str]) -> frozenset[str]:
    cases = {execution.case.safe_id: execution.case for execution in executions}
    names = {name: case.safe_id for case in cases.values() for name in (case.safe_id, case.id)}
    for name in wanted:
        if name not in names:
            there = _listed([case.id for case in cases.values()])
            raise OptionError(f"--hillclimb-case: no case is called {quoted(name)}; there are: {there}")
    return frozenset(names[name] for name in wanted)


def _nothing(candidates: Sequence[str], cases: Sequence[str]) -> str:
    if not candidates and not cases:
        return "the plan holds no execution"
    asked = [("--hillclimb-candidate", candidates), ("--hillclimb-case", cases)]
    options = " ".join(f"{flag} {quoted(name)}" for flag, names in asked for name in names)
    return f"{options}: no planned execution has these; --hillclimb-plan without them shows what meets what"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(quoted, names[:_LISTED])) + more
