"""The plan of a run: cases times repetitions in order."""

from __future__ import annotations

from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.ids import path_safe
from pytest_hillclimb.schedule.plan import plan


def cases(*ids: str) -> list[Case]:
    return [Case(id=id_) for id_ in ids]


def test_the_plan_keeps_the_order_of_cases_and_counts_repetitions_from_0() -> None:
    executions = plan(cases("b", "a"), 2)
    assert [execution.key for execution in executions] == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]
    assert [execution.order for execution in executions] == [0, 1, 2, 3]


def test_a_plan_without_cases_is_empty() -> None:
    assert plan([], 3) == []


def test_an_execution_is_shown_by_its_own_id_and_stored_by_its_safe_one() -> None:
    [execution] = plan(cases("case/1"), 1)
    safe = path_safe("case/1")
    assert execution.label == "case/1 rep0"
    assert execution.key == (safe, 0)
    assert execution.file_stem == f"{safe}_rep0"
