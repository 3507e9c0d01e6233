"""What a cycle of the balanced schedule covers, and how it is shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_files import CASES, GOLDEN, cases, manifest, nightly

from pytest_hillclimb.errors import ManifestError
from pytest_hillclimb.model.candidate import Manifest
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.report.coverage import coverage_lines
from pytest_hillclimb.schedule.coverage import Coverage, coverage
from pytest_hillclimb.schedule.matrix import matrix_plan

NIGHTLY = nightly()
quick = settings(derandomize=True, deadline=None, max_examples=40)


def with_tiers(made: Manifest, **tiers: str) -> Manifest:
    """Return a manifest whose candidates have these tiers, by id with underscores."""
    data = made.model_dump()
    for slot in data["slots"]:
        for candidate in slot["candidates"]:
            candidate["tier"] = tiers.get(candidate["id"].replace("-", "_"))
    return Manifest.model_validate(data)


def test_the_nightly_schedule_covers_all_but_the_golden_gaps() -> None:
    found = coverage(CASES, NIGHTLY)
    assert found.rotations == 7
    assert found.every_slot_each_rotation
    assert found.every_tier_each_rotation
    assert found.every_candidate_in_cycle
    assert found.every_case_meets_every_slot
    assert not found.every_case_meets_every_candidate
    assert {case: list(missed) for case, missed in found.gaps.items()} == GOLDEN["never_met"]


def test_with_five_slots_and_pairs_half_of_the_slot_pairs_never_meet() -> None:
    slots = [slot.id for slot in NIGHTLY.slots]
    neighbours = {tuple(sorted((slots[i], slots[(i + 1) % 5]))) for i in range(5)}
    assert {tuple(sorted(pair)) for pair in coverage(CASES, NIGHTLY).unmet_slots} == neighbours


def test_a_cycle_that_is_a_multiple_of_every_slot_leaves_no_gap() -> None:
    found = coverage(cases(5), manifest(2, 3, cycle=12, pair_offset=1))
    assert found.every_case_meets_every_candidate
    assert (found.gaps, found.unmet_slots) == ({}, ())


def test_one_case_and_one_rotation_leave_slots_candidates_and_cases_out() -> None:
    found = coverage(cases(1), manifest(1, 2, 1, cycle=1, pair_offset=1))
    assert found == Coverage(
        rotations=1,
        every_slot_each_rotation=False,
        every_tier_each_rotation=True,
        every_candidate_in_cycle=False,
        every_case_meets_every_slot=False,
        every_case_meets_every_candidate=False,
        gaps={"c0": ("s1-1", "s2-0")},
        unmet_slots=(("s0", "s2"), ("s1", "s2")),
    )


def test_a_tier_that_is_in_some_rotations_only_is_told() -> None:
    made = manifest(1, 2, pair_offset=1)
    assert coverage(cases(2), with_tiers(made, s0_0="strong", s1_0="cheap", s1_1="cheap")).every_tier_each_rotation
    assert coverage(cases(2), with_tiers(made, s0_0="strong", s1_0="strong")).every_tier_each_rotation
    assert not coverage(cases(2), with_tiers(made, s0_0="strong", s1_0="cheap")).every_tier_each_rotation


def test_a_schedule_that_is_not_possible_has_no_coverage() -> None:
    with pytest.raises(ManifestError, match="pair_offset is 3"):
        coverage(cases(2), manifest(1, 1, 1))


@quick
@given(st.lists(st.integers(1, 3), min_size=2, max_size=5), st.integers(1, 7), st.integers(1, 8))
def test_gaps_are_what_the_plans_of_the_cycle_never_hold(sizes: list[int], cycle: int, count: int) -> None:
    made = manifest(*sizes, cycle=cycle, pair_offset=1)
    met = {
        (execution.case.id, execution.candidate.id)
        for rotation in range(cycle)
        for execution in matrix_plan(cases(count), 1, made, schedule="balanced", rotation=rotation, seed="")
        if execution.candidate is not None
    }
    gaps = {(case, name) for case, missed in coverage(cases(count), made).gaps.items() for name in missed}
    every = {(case.id, candidate.id) for case in cases(count) for candidate in made.candidates}
    assert gaps == every - met


def test_coverage_is_shown_goal_by_goal_with_its_gaps() -> None:
    lines = coverage_lines(coverage(CASES, NIGHTLY))
    assert lines[:6] == [
        "coverage   of a cycle of 7 rotations",
        "           yes  every slot is used in every rotation",
        "           yes  every tier is used in every rotation",
        "           yes  every candidate is used in the cycle",
        "           yes  every case meets every slot",
        "           no   every case meets every candidate",
    ]
    assert "gap        final-response never meets opencode-glm-flash" in lines
    assert "apart      no case meets both codex-strong and opencode-strong" in lines
    assert len(lines) == 6 + 5 + 5


def test_gaps_are_capped_and_safe_to_show() -> None:
    many = [Case(id=f"c{i}\x1b[31m\nx") for i in range(30)]
    lines = coverage_lines(coverage(many, manifest(*[3] * 12, cycle=1, pair_offset=1)))
    gaps = [line for line in lines if line.startswith("gap ")]
    assert len(gaps) == 21
    assert gaps[-1] == "gap        ... and 10 more"
    assert gaps[0].startswith("gap        c0 x never meets s0-1, s0-2, s1-1")
    assert gaps[0].endswith(" and 14 more")
    assert all(line.isprintable() for line in lines)
