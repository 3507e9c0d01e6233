"""Checking a grader before money is spent: answers that need no app, which it must fail, or pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_hillclimb.engine.app import App, Context
from pytest_hillclimb.engine.outcome import Kind, Signal
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.run import Run, Turn
from pytest_hillclimb.model.settings import ORACLE


class NoExpectedAnswer(Exception):
    """The case does not say what its answer should be."""


def probe_app(app: App, lane: str, expected: Callable[[Case], object]) -> App:
    """Return *app* with ``run_case`` replaced: by an empty answer, or in the lane ``oracle`` by what is expected.

    :param expected: returns the answer that the grader must pass, None when there is none
    """

    def oracle(case: Case, ctx: Context) -> Run:
        if (answer := expected(case)) is None:
            raise NoExpectedAnswer(f"{case.id} has no expected answer to try the grader with")
        return _answered(case, answer)

    def signal(error: BaseException) -> Signal | None:
        return Signal(Kind.SKIPPED, str(error)) if isinstance(error, NoExpectedAnswer) else app.signal(error)

    return replace(app, run_case=oracle if lane == ORACLE else _null, signal=signal)


def _null(case: Case, ctx: Context) -> Run:
    return _answered(case, "")


def _answered(case: Case, output: object) -> Run:
    asked, answered = Turn(role="user", content=case.stored_prompt), Turn(role="assistant", content=output)
    return Run(output=output, transcript=[asked, answered])
