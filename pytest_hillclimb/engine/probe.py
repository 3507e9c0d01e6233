"""Checking a grader before money is spent: answers that need no app, which it must fail, or pass.

Scope: the environment leads to no credentials when the grader is called. A key that an eval has read from elsewhere,
into a client that it keeps, cannot be taken from it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from inspect import isawaitable

from pytest_hillclimb.engine.app import App, Context
from pytest_hillclimb.engine.outcome import Kind, Signal
from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.jsonable import plain
from pytest_hillclimb.model.run import Run, Turn
from pytest_hillclimb.model.settings import ORACLE
from pytest_hillclimb.model.withholding import withhold_credentials


class NoExpectedAnswer(Exception):
    """The case does not say what its answer should be."""


def probe_app(app: App, lane: str, expected: Callable[[Case], object]) -> App:
    """Return *app* with ``run_case`` replaced: by an empty answer, or in the lane ``oracle`` by what is expected.

    :param expected: returns the answer that the grader must pass, or an awaitable of it; None when there is none
    """

    def run_case(case: Case, ctx: Context) -> object:
        withhold_credentials(os.environ, app.required_env)  # a conftest or a fixture may have loaded some from a file
        answer = expected(case) if lane == ORACLE else ""
        return _answered_later(case, answer) if isawaitable(answer) else _answered(case, answer)

    def signal(error: BaseException) -> Signal | None:
        return Signal(Kind.SKIPPED, str(error)) if isinstance(error, NoExpectedAnswer) else app.signal(error)

    return replace(app, run_case=run_case, signal=signal)


async def _answered_later(case: Case, answer: Awaitable[object]) -> Run:
    return _answered(case, await answer)


def _answered(case: Case, answer: object) -> Run:
    if answer is None:
        raise NoExpectedAnswer(f"{case.id} has no expected answer to try the grader with")
    try:
        output = plain(answer, "expected")
    except BadValueError as error:
        hint = "return an answer from pytest_hillclimb_expected_answer"
        raise BadValueError.at(error.path, f"{error.reason}; {hint}") from None
    turns = [Turn(role="user", content=case.stored_prompt), Turn(role="assistant", content=output)]
    return Run(output=output, transcript=turns)
