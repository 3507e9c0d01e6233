"""The chaos lane: trials that inject a fault into the harness and grade whether its invariant held.

Pattern: an app like any other, with its two stages replaced. Running a case makes the fault of the attempt, has it
injected and calls the user's own app; grading asks for the checks of the invariant. The engine around it (deadline,
retries, rows) is the one of every trial.

Accepted trade-offs: the latency of a chaos row includes the time that the injection took.

Scope: a fault that did not fire, or that left no evidence, has tested nothing: it is an infrastructure failure, never
a pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from inspect import isawaitable

from pytest_hillclimb.chaos.fault import Fault
from pytest_hillclimb.chaos.scenarios import SCENARIOS, Scenario
from pytest_hillclimb.engine.app import App, Context
from pytest_hillclimb.engine.outcome import Kind, Signal
from pytest_hillclimb.errors import BadValueError, InfrastructureError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.grade import PASS_METRIC, Grade
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.schedule.plan import Key

Inject = Callable[[Fault, Context], object]
"""Makes the harness ready to fail: returns anything but None, or None when it does not support the fault."""

Check = Callable[[Fault, Run, Context], object]
"""Returns ``{check: bool}`` for the invariant of a fault that has fired."""

UNSUPPORTED = "fault_unsupported"
NOT_FIRED = "fault_not_fired"
WITHOUT_EVIDENCE = "fault_without_evidence"

_LISTED = 20
_SHOWN_CHARS = 200


class FaultUnsupportedError(Exception):
    """The harness does not support the fault: the execution is skipped."""


def chaos_app(
    app: App, inject: Inject, check: Check, *, check_is_async: bool, scenarios: Iterable[Scenario] = SCENARIOS
) -> App:
    """Return the app of the chaos lane for the user's *app*; its ``grade_case`` is not called.

    :param inject: may be a coroutine function
    :param check: may be a coroutine function
    :param check_is_async: whether what *check* returns is awaited; otherwise a coroutine from it is a grader error
    :param scenarios: those whose cases are run
    """
    lane = _Lane(app, inject, check, check_is_async, scenarios)
    return replace(
        app,
        run_case=lane.run_case,
        grade_case=lane.grade_case,
        grade_is_async=check_is_async,
        signal=lane.signal,
    )


class _Lane:
    def __init__(
        self, app: App, inject: Inject, check: Check, check_is_async: bool, scenarios: Iterable[Scenario]
    ) -> None:
        self._app = app
        self._inject = inject
        self._check = check
        self._check_is_async = check_is_async
        self._scenarios = {scenario.id: scenario for scenario in scenarios}
        self._faults: dict[Key, Fault] = {}
        """The fault of the last attempt of each execution: the one that is graded."""

    def run_case(self, case: Case, ctx: Context) -> object:
        fault = Fault(self._scenarios[case.id], ctx.seed, attempt=ctx.attempt, remaining=ctx.remaining)
        ctx.fault = self._faults[ctx.execution.key] = fault
        receipt = self._inject(fault, ctx)
        if isawaitable(receipt):
            return self._run_after(receipt, fault, case, ctx)
        _accept(fault, receipt)
        return self._app.run_case(case, ctx)

    async def _run_after(self, injecting: Awaitable[object], fault: Fault, case: Case, ctx: Context) -> object:
        _accept(fault, await injecting)
        value = await asyncio.to_thread(self._app.run_case, case, ctx)  # a plain def must not block the loop
        return await value if isawaitable(value) else value

    def grade_case(self, case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        fault = ctx.fault = self._faults[ctx.execution.key]
        if not fault.fired:
            raise InfrastructureError(NOT_FIRED, False, f"{_named(fault)} did not fire, so nothing was tested")
        if not fault.evidence:
            raise InfrastructureError(
                WITHOUT_EVIDENCE, False, f"{_named(fault)} left no evidence; pass an id to ctx.fault.fire(...)"
            )
        checks = self._check(fault, run, ctx)
        if isawaitable(checks):
            return _graded_later(fault, checks) if self._check_is_async else checks
        return graded(fault, checks)

    def signal(self, error: BaseException) -> Signal | None:
        if isinstance(error, FaultUnsupportedError):
            return Signal(Kind.SKIPPED, str(error))
        return self._app.signal(error)


def graded(fault: Fault, checks: object) -> Grade:
    """Return the grade of checks: a metric for each, and ``pass`` when all hold.

    :raises BadValueError: when there are no checks, or one of them is no bool
    """
    if not isinstance(checks, Mapping):
        raise BadValueError.at("checks", f"expected {{check: bool}}, got {type(checks).__name__}")
    if not checks:
        raise BadValueError.at("checks", "expected at least one check; an invariant that nothing checks has not held")
    for name, held in checks.items():
        if not isinstance(name, str) or not name or name == PASS_METRIC:
            raise BadValueError.at("checks", f"expected names as text other than {PASS_METRIC!r}, got {name!r:.80}")
        if not isinstance(held, bool):
            raise BadValueError.at(f"checks.{name}", f"expected True or False, got {type(held).__name__}")
    passed = all(checks.values())
    return Grade(
        grade={**checks, PASS_METRIC: passed},
        explanation={PASS_METRIC: _explanation(fault, [name for name, held in checks.items() if not held])},
        passed=passed,
    )


async def _graded_later(fault: Fault, checking: Awaitable[object]) -> Grade:
    return graded(fault, await checking)


def _accept(fault: Fault, receipt: object) -> None:
    if receipt is None:
        raise FaultUnsupportedError(f"{UNSUPPORTED}: the harness does not support {fault.kind}")
    fault.receipt = receipt


def _explanation(fault: Fault, broken: list[str]) -> str:
    evidence = fault.evidence
    shown = ", ".join(f"{each:.{_SHOWN_CHARS}}" for each in evidence[:_LISTED])
    more = f" and {len(evidence) - _LISTED} more" if len(evidence) > _LISTED else ""
    text = f"{_named(fault)} fired, evidence: {shown}{more}"
    return f"{text}; broken: {', '.join(broken)}; invariant: {fault.invariant}" if broken else text


def _named(fault: Fault) -> str:
    return f"fault {fault.id} at phase {fault.phase}"
