"""Plans of a matrix: the golden ids of the nightly schedule, and what holds for every schedule."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_files import CASES, GOLDEN, cases, manifest, nightly

from pytest_hillclimb.catalog import CatalogEntry
from pytest_hillclimb.errors import ManifestError, OptionError
from pytest_hillclimb.model.candidate import Candidate, Manifest
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.ids import path_safe
from pytest_hillclimb.schedule.matrix import ScheduleName, active_candidates, matrix_plan
from pytest_hillclimb.schedule.plan import Execution
from pytest_hillclimb.schedule.prompt_ids import check_prompt_ids

NIGHTLY = nightly()
quick = settings(derandomize=True, deadline=None, max_examples=60)


def balanced(rotation: int, seed: str = "nightly-v1") -> list[Execution]:
    return matrix_plan(CASES, 1, NIGHTLY, schedule="balanced", rotation=rotation, seed=seed)


def ids(executions: list[Execution]) -> list[str]:
    return [str(execution.execution_id) for execution in executions]


def candidate_ids(executions: list[Execution]) -> list[str]:
    return [execution.candidate.id for execution in executions if execution.candidate is not None]


@pytest.mark.parametrize("rotation", range(7))
def test_the_nightly_schedule_has_its_40_golden_executions(rotation: int) -> None:
    golden = [line.split() for line in GOLDEN["rows"][str(rotation)]]
    wanted = [
        (case, candidate, rep, f"rwe-{digest}") for case, candidate, *ids in golden for rep, digest in enumerate(ids)
    ]
    plan = balanced(rotation)
    assert [(e.case.id, e.candidate.id, e.rep, e.execution_id) for e in plan if e.candidate] == wanted
    assert [execution.order for execution in plan] == list(range(40))


@pytest.mark.parametrize("rotation", range(7))
@pytest.mark.parametrize("seed", list(GOLDEN["schedules"]))
def test_schedules_have_the_golden_sums_for_both_seeds(seed: str, rotation: int) -> None:
    golden = GOLDEN["schedules"][seed][rotation]
    plan = balanced(rotation, seed)
    assert hashlib.sha256("".join(ids(plan)).encode()).hexdigest() == golden["sha256"]
    assert (len(plan), ids(plan)[0], ids(plan)[-1]) == (golden["executions"], golden["first"], golden["last"])
    used = candidate_ids(plan)
    assert {name: used.count(name) for name in used} == golden["per_candidate"]
    assert [c.id for c in active_candidates(NIGHTLY, "balanced", rotation)] == golden["active"]


@pytest.mark.parametrize(("rotation", "wanted"), GOLDEN["active"].items())
def test_candidates_of_a_slot_take_turns(rotation: str, wanted: list[str]) -> None:
    for schedule in ("full", "balanced"):
        active = active_candidates(NIGHTLY, schedule, int(rotation))
        assert [candidate.id for candidate in active] == wanted


def test_a_phase_shifts_the_turn_of_a_slot() -> None:
    one = manifest(2, 3)
    shifted = one.model_copy(update={"slots": (one.slots[0], one.slots[1].model_copy(update={"phase": -1}))})
    assert [c.id for c in active_candidates(shifted, "full", 0)] == ["s0-0", "s1-2"]
    assert [c.id for c in active_candidates(shifted, "full", 1)] == ["s0-1", "s1-0"]


@pytest.mark.parametrize(("outside", "inside"), [(7, 0), (8, 1), (-1, 6), (-7, 0), (-8, 6), (2956, 2)])
def test_a_rotation_outside_of_the_cycle_is_the_one_inside(outside: int, inside: int) -> None:
    assert balanced(outside) == balanced(inside)


def test_balanced_needs_a_rotation() -> None:
    with pytest.raises(OptionError, match="--hillclimb-rotation"):
        matrix_plan(CASES, 1, NIGHTLY, schedule="balanced", rotation=None, seed="")
    with pytest.raises(OptionError, match="--hillclimb-rotation"):
        active_candidates(NIGHTLY, "balanced", None)


def test_full_is_every_case_with_every_candidate_and_every_repetition() -> None:
    plan = matrix_plan(cases(2), 2, manifest(1, 2), schedule="full", rotation=None, seed="x")
    assert [(e.label, e.order) for e in plan] == [
        (f"c{case} {candidate}/rep{rep}", order)
        for order, (case, candidate, rep) in enumerate(
            (case, candidate, rep) for case in (0, 1) for candidate in ("s0-0", "s1-0", "s1-1") for rep in (0, 1)
        )
    ]
    assert plan[1].execution_id == "rwe-" + hashlib.sha256(b"x:full:c0:s0-0:2").hexdigest()[:16]


def test_full_with_a_rotation_has_only_the_active_candidates() -> None:
    plan = matrix_plan(cases(1), 1, manifest(1, 2), schedule="full", rotation=8, seed="x")
    assert candidate_ids(plan) == ["s0-0", "s1-1"]
    assert plan[0].execution_id == "rwe-" + hashlib.sha256(b"x:1:c0:s0-0:1").hexdigest()[:16]


def test_full_takes_no_notice_of_the_numbers_of_the_balanced_schedule() -> None:
    odd = manifest(1, pair_offset=3, candidates_per_case=5, repeats={"no-such-case": 9})
    assert len(matrix_plan(cases(2), 3, odd, schedule="full", rotation=None, seed="")) == 6


def test_repeats_count_for_their_cases_and_reps_for_the_others() -> None:
    odd = Case(id="case/1")
    rules = manifest(1, candidates_per_case=1, repeats={"case/1": 3, "c1": 1})
    plan = matrix_plan([odd, *cases(2)], 2, rules, schedule="balanced", rotation=0, seed="")
    assert [execution.case.id for execution in plan] == ["case/1"] * 3 + ["c0"] * 2 + ["c1"]
    by_safe_id = manifest(1, candidates_per_case=1, repeats={path_safe("case/1"): 3, "c1": 1})
    assert matrix_plan([odd, *cases(2)], 2, by_safe_id, schedule="balanced", rotation=0, seed="") == plan


@pytest.mark.parametrize(
    ("name", "hint"), [("final-respnse", "did you mean 'final-response'?"), ("zzz", "write the id of a case")]
)
def test_repeats_of_a_case_that_does_not_exist_are_refused_with_the_nearest(name: str, hint: str) -> None:
    rules = manifest(1, candidates_per_case=1, repeats={name: 3})
    with pytest.raises(ManifestError) as caught:
        matrix_plan(CASES, 1, rules, schedule="balanced", rotation=0, seed="")
    assert caught.value.message.startswith(f"m.yaml: schedule.repeats: no case is called {name!r}; {hint}")


@pytest.mark.parametrize(("active", "offset", "distinct"), GOLDEN["offsets"])
def test_an_offset_that_pairs_a_candidate_with_itself_is_refused(active: int, offset: int, distinct: bool) -> None:
    rules = manifest(*[1] * active, pair_offset=offset)
    if distinct:
        plan = matrix_plan(cases(3), 1, rules, schedule="balanced", rotation=0, seed="")
        assert len(set(zip((e.case.id for e in plan), candidate_ids(plan), strict=True))) == 6
    else:
        with pytest.raises(ManifestError, match=r"m\.yaml: schedule\.(pair_offset is 3|candidates_per_case is 2)"):
            matrix_plan(cases(3), 1, rules, schedule="balanced", rotation=0, seed="")


def test_a_refused_offset_comes_with_one_that_works() -> None:
    with pytest.raises(ManifestError) as caught:
        matrix_plan(cases(1), 1, manifest(1, 1, 1), schedule="balanced", rotation=0, seed="")
    assert caught.value.message == (
        "m.yaml: schedule.pair_offset is 3, which with 3 active candidates gives a case the same one twice: write 2"
    )
    with pytest.raises(ManifestError) as caught:
        matrix_plan(cases(1), 1, manifest(1), schedule="balanced", rotation=0, seed="")
    assert caught.value.message == (
        "m.yaml: schedule.candidates_per_case is 2, but a rotation has 1 active, one for each slot: "
        "write at most 1, or add slots"
    )


@quick
@given(st.integers(1, 12), st.integers(1, 20), st.integers(1, 12))
def test_a_schedule_is_refused_or_gives_each_case_distinct_candidates(active: int, offset: int, wanted: int) -> None:
    sizes = [1] * active
    rules = manifest(*sizes, pair_offset=offset, candidates_per_case=wanted)
    try:
        plan = matrix_plan(cases(3), 1, rules, schedule="balanced", rotation=5, seed="")
    except ManifestError as error:
        fix = int(re.findall(r"write (?:at most )?(\d+)", error.message)[0])
        changed = "candidates_per_case" if wanted > active else "pair_offset"
        better = manifest(*sizes, **{"pair_offset": offset, "candidates_per_case": wanted, changed: fix})
        if changed == "pair_offset":
            assert matrix_plan(cases(3), 1, better, schedule="balanced", rotation=5, seed="")
        else:
            assert fix == active
    else:
        for case in cases(3):
            met = [e.candidate.id for e in plan if e.case == case and e.candidate is not None]
            assert len(met) == len(set(met)) == wanted


@quick
@given(
    st.lists(st.integers(1, 3), min_size=2, max_size=5),
    st.integers(-(10**12), 10**12),
    st.integers(1, 9),
    st.integers(1, 3),
    st.text(max_size=8),
    st.booleans(),
)
def test_plans_are_pure_their_ids_unique_and_rotations_normalised(
    sizes: list[int], rotation: int, cycle: int, reps: int, seed: str, full: bool
) -> None:
    rules = manifest(*sizes, cycle=cycle, pair_offset=1, repeats={"c1": 2})

    def planned(rotation: int) -> list[Execution]:
        schedule: ScheduleName = "full" if full else "balanced"
        return matrix_plan(cases(4), reps, rules, schedule=schedule, rotation=rotation, seed=seed)

    plan = planned(rotation)
    assert plan == planned(rotation) == planned(rotation % cycle) == planned(rotation - cycle)
    assert len(set(ids(plan))) == len({execution.key for execution in plan}) == len(plan)
    assert all(re.fullmatch("rwe-[0-9a-f]{16}", id_) for id_ in ids(plan))
    active = {candidate.id for candidate in active_candidates(rules, "full", rotation)}
    assert set(candidate_ids(plan)) <= active
    assert [execution.order for execution in plan] == list(range(len(plan)))


def test_a_seed_that_utf8_cannot_hold_still_gives_ids() -> None:
    plan = matrix_plan(cases(1), 1, manifest(1), schedule="full", rotation=None, seed="\udcff")
    assert re.fullmatch("rwe-[0-9a-f]{16}", ids(plan)[0])


def test_equal_ids_are_refused() -> None:
    twins = [Case(id="a"), Case(id="a")]  # which catalogs refuse, but this function takes any
    with pytest.raises(ManifestError, match="'a s0-0/rep0' and 'a s0-0/rep0' have the same execution id, rwe-"):
        matrix_plan(twins, 1, manifest(1), schedule="full", rotation=None, seed="")


def check(case_ids: list[str], ids_: list[str]) -> None:
    candidates = [Candidate(id=id_, slot_id="s", model="m") for id_ in ids_]
    check_prompt_ids(
        [CatalogEntry(Case(id=id_), "c.yaml", f"line {n}") for n, id_ in enumerate(case_ids, 1)], candidates
    )


@pytest.mark.parametrize(
    ("case_ids", "ids_", "problem"),
    [
        (["a", "a.b"], ["c", "b.c"], "would share the id 'a.b.c'"),
        (["a", "A.b"], ["c", "B.c"], "would share the id 'a.B.c'"),
        (["a"], ["x", "x.html"], "would share the reference file 'a.x.html'"),
        (["a", "a.x"], ["x", "JSON"], "would share the reference file 'a.x.JSON'"),
    ],
)
def test_pairs_that_would_share_a_file_are_refused_with_both(
    case_ids: list[str], ids_: list[str], problem: str
) -> None:
    with pytest.raises(ManifestError) as caught:
        check(case_ids, ids_)
    message = caught.value.message
    assert problem in message
    assert "(c.yaml, line 1) with candidate " in message
    assert f"(c.yaml, line {len(case_ids)}) with candidate " in message


@pytest.mark.parametrize(
    ("case_ids", "ids_"),
    [(["a", "b"], ["x", "y"]), (["a", "a.b"], ["c", "d"]), (["a"], ["x", "x.md"]), (["a" * 129, "b"], ["x", "y"])],
)
def test_pairs_that_share_nothing_pass(case_ids: list[str], ids_: list[str]) -> None:
    check(case_ids, ids_)


def test_the_nightly_matrix_shares_nothing() -> None:
    assert isinstance(NIGHTLY, Manifest)
    check([case.id for case in CASES], [candidate.id for candidate in NIGHTLY.candidates])
