"""Exceptions that are odd to look at: each costs its own item, and what can be read of it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from engine_lab import Lab, row_of

from pytest_hillclimb.engine.app import Context
from pytest_hillclimb.engine.outcome import Kind
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.run import Run


class Falsy(RuntimeError):
    def __bool__(self) -> bool:
        return False


class NoTruth(RuntimeError):
    def __bool__(self) -> bool:
        raise RuntimeError("asked for its truth")


class NoModule(RuntimeError):
    pass


NoModule.__module__ = None  # type: ignore[assignment]


class StrExits(RuntimeError):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class PropertyExits(RuntimeError):
    @property
    def status(self) -> int:
        raise SystemExit(3)


class OddText(str):
    def __getitem__(self, _: object) -> str:
        raise RuntimeError("asked for a part")

    def __bool__(self) -> bool:
        raise RuntimeError("asked for its truth")


class OddMessage(RuntimeError):
    def __str__(self) -> str:
        return OddText("the message")


ODD = [
    (Falsy("the message"), "the message"),
    (NoTruth("the message"), "the message"),
    (NoModule("the message"), "the message"),
    (StrExits(), "its message cannot be read"),
    (PropertyExits("the message"), "the message"),
    (OddMessage(), "the message"),
    (ExceptionGroup("all", [ExceptionGroup("some", [ValueError("the message")])]), "the message"),
    (BaseExceptionGroup("all", [SystemExit("the message"), KeyboardInterrupt()]), "the message"),
]
odd = pytest.mark.parametrize(("error", "says"), ODD, ids=[type(error).__name__ for error, _ in ODD])


@odd
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_an_app_may_raise_it(lab: Callable[..., Lab], error: BaseException, says: str, is_async: bool) -> None:
    async def later(case: Case) -> object:
        await asyncio.sleep(0)
        raise error

    def app(case: Case, ctx: Context) -> object:
        if case.id == "fine":
            return {"output": "x"}
        if is_async:
            return later(case)
        raise error

    outcomes = lab(app).outcomes("odd", "fine")
    row = row_of(outcomes["odd"])
    assert (row["failure_class"], row["error_type"]) == ("error", type(error).__name__)
    assert says in row["error"]
    assert outcomes["fine"].kind is Kind.SCORED


@odd
def test_a_grader_may_raise_it(lab: Callable[..., Lab], error: BaseException, says: str) -> None:
    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        raise error

    row = row_of(lab(lambda case, ctx: {"usage": {"input_tokens": 1}}, grade).outcome())
    assert row["failure_class"] == "grader_error"
    assert says in row["error"]
    assert row["usage"] == {"input_tokens": 1}


def test_an_app_that_stops_the_loop_or_cancels_all_its_tasks_costs_no_waits(lab: Callable[..., Lab]) -> None:
    async def app(case: Case, ctx: Context) -> object:
        if case.id == "stops":
            asyncio.get_running_loop().stop()
        if case.id == "cancels":
            for task in asyncio.all_tasks():
                task.cancel()
        await asyncio.sleep(0.01)
        return {"output": "x"}

    outcomes = lab(app, timeout=10).outcomes("stops", "cancels", "a", "b", "c")
    assert all(outcome.duration < 5 for outcome in outcomes.values())
    assert outcomes["c"].kind is Kind.SCORED
