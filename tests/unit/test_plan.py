"""The plan of a run: cases times repetitions in order, and the cases that a user picks."""

from __future__ import annotations

import pytest

from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.ids import path_safe
from pytest_hillclimb.schedule.plan import plan, selected_cases


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


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ([], None),
        (["a"], {"a"}),
        (["a", "a", "b"], {"a", "b"}),
        (["case/1"], {path_safe("case/1")}),
        ([path_safe("case/1")], {path_safe("case/1")}),
    ],
)
def test_cases_are_picked_by_their_id_as_written_or_path_safe(wanted: list[str], chosen: set[str] | None) -> None:
    assert selected_cases(cases("a", "b", "case/1"), wanted) == chosen


@pytest.mark.parametrize("wrong", ["c", "A", "a ", "a*", ""])
def test_a_case_that_does_not_exist_is_refused_with_those_that_do(wrong: str) -> None:
    with pytest.raises(OptionError) as caught:
        selected_cases(cases("a", "b"), ["a", wrong])
    assert str(caught.value) == f"--hillclimb-case: no case is called {wrong!r}; there are: a, b"


def test_of_many_cases_only_the_first_are_listed() -> None:
    with pytest.raises(OptionError) as caught:
        selected_cases(cases(*(f"c{n}" for n in range(25))), ["x"])
    assert str(caught.value).endswith("c18, c19 and 5 more")
