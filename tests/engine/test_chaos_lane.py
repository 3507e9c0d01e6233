"""The chaos lane: the fault reaches the app and its grading, which passes only what fired and left evidence."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from engine_lab import Lab, outcome_of, row_of

from pytest_hillclimb.chaos.fault import Fault
from pytest_hillclimb.chaos.lane import Check, Inject, chaos_app
from pytest_hillclimb.chaos.scenarios import SCENARIOS
from pytest_hillclimb.engine.app import Context
from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.errors import InfrastructureError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.run import Run

ID = "chaos-restart"
NewLane = Callable[..., Lab]


def arm(fault: Fault, ctx: Context) -> object:
    return "armed"


def strike(case: Case, ctx: Context) -> object:
    ctx.fault.fire("pid 1")
    return {"output": f"{ctx.fault.kind} at {ctx.fault.phase}"}


def holds(fault: Fault, run: Run, ctx: Context) -> object:
    return {"one owner": True, "nothing lost": True}


@pytest.fixture
def lane(lab: Callable[..., Lab]) -> NewLane:
    def make(
        run_case: Callable[[Case, Context], object] = strike,
        check: Check = holds,
        inject: Inject = arm,
        **more: Any,
    ) -> Lab:
        made = lab(run_case, lambda *_: pytest.fail("the user's own grader is not called"), **more)
        made._app = chaos_app(made._app, inject, check, check_is_async=asyncio.iscoroutinefunction(check))
        return made

    return make


def only(lane: Lab) -> Outcome:
    return lane.outcomes(ID)[ID]


def assert_failed(outcome: Outcome, failure_class: str, *words: str) -> dict[str, Any]:
    assert outcome.kind is Kind.FAILED, outcome
    row = row_of(outcome)
    assert row["failure_class"] == failure_class
    for word in words:
        assert word in row["error"]
    return row


def test_invariant_that_holds(lane: NewLane) -> None:
    outcome = only(lane())
    row = row_of(outcome)
    assert outcome.passed is True
    assert row["grade"] == {"one owner": 1, "nothing lost": 1, "pass": 1}
    phase = outcome.output.rpartition(" ")[2]
    assert phase in SCENARIOS[0].phases
    assert f"fault {ID}-" in row["explanation"]["pass"]
    assert f"at phase {phase} fired, evidence: pid 1" in row["explanation"]["pass"]


def test_invariant_that_is_broken(lane: NewLane) -> None:
    outcome = only(lane(check=lambda fault, run, ctx: {"one owner": True, "nothing lost": False}))
    row = row_of(outcome)
    assert (outcome.kind, outcome.passed) == (Kind.SCORED, False)
    assert row["grade"] == {"one owner": 1, "nothing lost": 0, "pass": 0}
    assert "broken: nothing lost" in row["explanation"]["pass"]
    assert SCENARIOS[0].invariant in row["explanation"]["pass"]


@pytest.mark.parametrize("fires", [False, True])
def test_fault_that_did_not_fire_or_left_nothing_is_never_a_pass(lane: NewLane, fires: bool) -> None:
    def run_case(case: Case, ctx: Context) -> object:
        if fires:
            ctx.fault.fire()
        return {"output": "fine", "usage": {"input_tokens": 3}}

    asked = list[str]()
    lab = lane(run_case, check=lambda fault, run, ctx: asked.append("check") or {"held": True})  # type: ignore[func-returns-value]
    row = assert_failed(only(lab), "infrastructure", f"fault {ID}-")
    assert row["code"] == ("fault_without_evidence" if fires else "fault_not_fired")
    assert row["usage"] == {"input_tokens": 3}, "what it cost is counted"
    assert lab.runs == [ID], "it is not run again"
    assert asked == []


def test_unsupported_fault_is_skipped(lane: NewLane) -> None:
    lab = lane(inject=lambda fault, ctx: None)
    outcome = only(lab)
    assert (outcome.kind, outcome.row) == (Kind.SKIPPED, None)
    assert outcome.reason == "fault_unsupported: the harness does not support restart"
    assert lab.runs == []


@pytest.mark.parametrize(
    "checks",
    [
        None,
        {},
        True,
        ["one owner"],
        {"one owner": 1},
        {"one owner": None},
        {"one owner": True, "nothing lost": "yes"},
        {"pass": True},
        {"": True},
        {1: True},
    ],
)
def test_checks_that_are_none(lane: NewLane, checks: object) -> None:
    assert_failed(only(lane(check=lambda fault, run, ctx: checks)), "grader_error", "checks")


def test_coroutine_that_a_check_forgot_to_await(lane: NewLane) -> None:
    async def later() -> object:
        return {"held": True}

    assert_failed(only(lane(check=lambda fault, run, ctx: later())), "grader_error", "coroutine")


@pytest.mark.parametrize("stage", ["inject", "run", "check"])
def test_user_code_that_raises(lane: NewLane, stage: str) -> None:
    def raising(*_: object) -> object:
        raise RuntimeError(f"{stage} is broken")

    given: dict[str, Any] = {"inject": arm, "run_case": strike, "check": holds}
    given["run_case" if stage == "run" else stage] = raising
    assert_failed(only(lane(**given)), "grader_error" if stage == "check" else "error", f"{stage} is broken")


async def arm_later(fault: Fault, ctx: Context) -> object:
    await asyncio.sleep(0)
    return arm(fault, ctx)


async def unsupported_later(fault: Fault, ctx: Context) -> None:
    await asyncio.sleep(0)


async def strike_later(case: Case, ctx: Context) -> object:
    await asyncio.sleep(0)
    return strike(case, ctx)


async def hold_later(fault: Fault, run: Run, ctx: Context) -> object:
    await asyncio.sleep(0)
    return holds(fault, run, ctx)


@pytest.mark.parametrize("inject", [arm, arm_later])
@pytest.mark.parametrize("run_case", [strike, strike_later])
@pytest.mark.parametrize("check", [holds, hold_later])
def test_plain_and_async_functions_in_any_mixture(lane: NewLane, inject: Any, run_case: Any, check: Any) -> None:
    outcome = only(lane(run_case, check, inject))
    assert outcome.passed is True, outcome
    assert "evidence: pid 1" in row_of(outcome)["explanation"]["pass"]


def test_unsupported_fault_of_an_async_injection(lane: NewLane) -> None:
    lab = lane(inject=unsupported_later)
    assert only(lab).kind is Kind.SKIPPED
    assert lab.runs == []


def test_plain_app_after_an_async_injection_does_not_hold_up_the_loop(lane: NewLane) -> None:
    met = threading.Barrier(2, timeout=10)

    def run_case(case: Case, ctx: Context) -> object:
        met.wait()  # two at a time, which one thread of a loop could not do
        return strike(case, ctx)

    outcomes = lane(run_case, inject=arm_later).outcomes(ID, "chaos-wake-race")
    assert [outcome.passed for outcome in outcomes.values()] == [True, True]


def test_one_fault_reaches_every_stage_of_an_attempt(lane: NewLane) -> None:
    seen = list[tuple[str, Fault]]()

    def inject(fault: Fault, ctx: Context) -> object:
        assert fault is ctx.fault
        seen.append(("inject", fault))
        return {"handle": 1}

    def run_case(case: Case, ctx: Context) -> object:
        seen.append(("run", ctx.fault))
        if ctx.attempt == 1:
            ctx.fault.fire("first attempt")
            raise InfrastructureError("sandbox_lost", True, "gone")
        assert ctx.fault.receipt == {"handle": 1}
        assert ctx.fault.remaining() > 0
        ctx.fault.fire("second attempt")
        return {"output": "fine"}

    def check(fault: Fault, run: Run, ctx: Context) -> object:
        assert fault is ctx.fault
        seen.append(("check", fault))
        return {"held": run.output == "fine"}

    outcome = only(lane(run_case, check, inject))
    assert outcome.passed is True, outcome
    assert [stage for stage, _ in seen] == ["inject", "run", "inject", "run", "check"]
    first, _, second, *others = [fault for _, fault in seen]
    assert first is not second, "what the first attempt did proves nothing about the second"
    assert all(fault is second for fault in others)
    assert (first.phase, first.seed) == (second.phase, second.seed)
    assert "evidence: second attempt" in row_of(outcome)["explanation"]["pass"]


def test_check_that_is_made_again_gets_the_same_fault(lane: NewLane) -> None:
    seen = list[Fault]()

    def check(fault: Fault, run: Run, ctx: Context) -> object:
        seen.append(fault)
        if ctx.attempt == 1:
            raise InfrastructureError("store_busy", True, "busy")
        return {"held": True}

    assert only(lane(check=check)).passed is True
    assert len(seen) == 2
    assert seen[0] is seen[1]


def test_executions_have_faults_of_their_own(lane: NewLane) -> None:
    def run_case(case: Case, ctx: Context) -> object:
        ctx.fault.fire(f"{case.id} {ctx.rep}")
        return {"output": f"{case.id} {ctx.rep}"}

    lab = lane(run_case, check=lambda fault, run, ctx: {"own": fault.evidence == (run.output,)}, width=4)
    trials = lab.start(*(scenario.id for scenario in SCENARIOS), reps=3)
    lab.wait(trials)
    assert [outcome_of(trial).passed for trial in trials] == [True] * 24


def test_injection_that_hangs_ends_at_the_ceiling(lane: NewLane, hang: Any) -> None:
    lab = lane(inject=lambda fault, ctx: hang.block(), timeout=0.2)
    assert_failed(only(lab), "timeout", ID)
    assert lab.runs == []
