"""What a user selects of a plan."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from matrix_files import CASES, GOLDEN, cases, manifest, nightly

from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.ids import path_safe
from pytest_hillclimb.options import OPTIONS, parse_value
from pytest_hillclimb.schedule.matrix import active_candidates, matrix_plan
from pytest_hillclimb.schedule.plan import Execution, plan
from pytest_hillclimb.schedule.selection import select

NIGHTLY = nightly()
PLAN = matrix_plan(CASES, 1, NIGHTLY, schedule="balanced", rotation=0, seed="nightly-v1")
ACTIVE = active_candidates(NIGHTLY, "balanced", 0)
[LIMIT] = (option for option in OPTIONS if option.name == "limit")


def chosen(**selection: Any) -> list[Execution]:
    return select(PLAN, manifest=NIGHTLY, active=ACTIVE, **selection)


def refusal(**selection: Any) -> str:
    with pytest.raises(OptionError) as caught:
        chosen(**selection)
    message = caught.value.message
    assert len(message.splitlines()) == 1
    return message


@pytest.mark.parametrize("golden", GOLDEN["selections"])
def test_selections_are_those_of_the_golden_values(golden: dict[str, Any]) -> None:
    candidates, wanted = golden.get("candidate_ids", []), golden.get("case_ids", [])

    def selected() -> list[Execution]:
        limit = parse_value(LIMIT, golden["limit"], LIMIT.flag) if "limit" in golden else None
        return chosen(candidates=candidates, cases=wanted, limit=limit)

    if golden["count"] is None:
        with pytest.raises(OptionError):
            selected()
        return
    found = selected()
    ids = [str(execution.execution_id) for execution in found]
    assert len(found) == golden["count"]
    assert hashlib.sha256("".join(ids).encode()).hexdigest() == golden["sha256"]
    used = {execution.candidate.id for execution in found if execution.candidate is not None}
    assert [candidate.id for candidate in ACTIVE if candidate.id in used] == golden["candidates"]


def test_a_selection_leaves_the_plan_and_its_order_alone() -> None:
    before = list(PLAN)
    found = chosen(
        cases=["trace-lineage", "final-response", "trace-lineage"], candidates=["acpx-codex-sol", "codex-luna"]
    )
    assert [(execution.case.id, execution.order) for execution in found] == [
        ("final-response", 0),
        ("final-response", 1),
        ("final-response", 2),
        ("trace-lineage", 39),
    ]
    assert before == PLAN


def test_an_unknown_candidate_is_refused_with_those_that_exist() -> None:
    message = refusal(candidates=["codex-luna", "nope"])
    assert message.startswith("--hillclimb-candidate: no candidate is called 'nope'; there are: 'codex-luna', ")
    assert message.endswith("'acpx-codex-sol'")
    assert "'opencode-glm'" in message


def test_a_candidate_whose_turn_it_is_not_is_refused_with_those_whose_it_is() -> None:
    message = refusal(candidates=["opencode-glm"])
    assert message.startswith("--hillclimb-candidate: 'opencode-glm' is not active in this rotation; active are: ")
    assert "'opencode-kimi'" in message
    assert message.count("opencode-glm") == 1


def test_an_unknown_case_is_refused_with_those_that_exist() -> None:
    message = refusal(cases=["nope"])
    assert message.startswith("--hillclimb-case: no case is called 'nope'; there are: 'final-response', ")


def test_a_selection_that_holds_nothing_is_refused_with_what_was_asked() -> None:
    message = refusal(candidates=["codex-luna"], cases=["rich-activity"])
    assert message.startswith(
        "--hillclimb-candidate 'codex-luna' --hillclimb-case 'rich-activity': no planned execution"
    )


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_at_least_1(limit: int) -> None:
    assert refusal(limit=limit) == f"--hillclimb-limit: expected a whole number from 1, got {limit}"


def test_a_candidate_that_is_active_but_meets_no_case_is_no_selection() -> None:
    wide = manifest(1, 1, 1, 1, 1)
    executions = matrix_plan(cases(1), 1, wide, schedule="balanced", rotation=0, seed="")
    with pytest.raises(OptionError, match="no planned execution has these"):
        select(executions, candidates=["s1-0"], manifest=wide, active=active_candidates(wide, "balanced", 0))


def test_without_a_manifest_cases_and_limit_select() -> None:
    executions = plan([Case(id="case/1"), Case(id="b")], 2)
    for name in ("case/1", path_safe("case/1")):
        assert [e.order for e in select(executions, cases=[name])] == [0, 1]
    assert [e.order for e in select(executions, limit=3)] == [0, 1, 2]
    assert select(executions) == executions


@pytest.mark.parametrize("wrong", ["c", "A", "a ", "a*", ""])
def test_a_case_is_named_exactly(wrong: str) -> None:
    with pytest.raises(OptionError) as caught:
        select(plan([Case(id="a"), Case(id="b")], 1), cases=["a", wrong])
    assert caught.value.message == f"--hillclimb-case: no case is called {wrong!r}; there are: 'a', 'b'"


def test_of_many_cases_only_the_first_are_listed() -> None:
    with pytest.raises(OptionError, match=r"'c18', 'c19' and 5 more$"):
        select(plan(cases(25), 1), cases=["x"])


def test_without_a_manifest_a_candidate_is_refused() -> None:
    with pytest.raises(
        OptionError, match="--hillclimb-candidate 'x' needs a candidate manifest: give --hillclimb-candidates"
    ):
        select(plan(cases(1), 1), candidates=["x"])


def test_hostile_names_are_shown_escaped() -> None:
    executions = plan([Case(id="\x1b[2J\n")], 1)
    with pytest.raises(OptionError) as caught:
        select(executions, cases=["\x1b]0;x\x07"])
    assert caught.value.message.isprintable()
