"""An engine with real threads and loops, an app made of functions of the test, and ways to hang that end with it."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from pytest_hillclimb.engine.app import App, Context
from pytest_hillclimb.engine.engine import Engine
from pytest_hillclimb.engine.outcome import Outcome, Signal
from pytest_hillclimb.engine.trial import Trial
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.schedule.plan import plan

PATIENCE_S = 20.0  # against a test that would hang; nothing is expected to take that long

RunCase = Callable[[Case, Context], object]
GradeCase = Callable[[Case, Run, str | None, Context], object]


class Hang:
    """Ways not to return, until the test is over."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def block(self) -> None:
        self.over.wait(PATIENCE_S)

    async def sleep(self) -> None:
        await asyncio.sleep(PATIENCE_S)

    async def block_elsewhere(self) -> None:
        await asyncio.to_thread(self.block)

    async def shrug_off(self) -> None:
        """Swallow every cancellation."""
        while not self.over.is_set():
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue


class Lab:
    """One engine, the trials it was given, and the calls that it made."""

    def __init__(
        self,
        run_case: RunCase,
        grade_case: GradeCase,
        *,
        width: int,
        settings: Settings,
        perf: Callable[[Case, Run], list[object]],
        reference: Callable[[str], str | None],
        signal: Callable[[BaseException], Signal | None],
        state: Mapping[str, Any],
    ) -> None:
        self.runs: list[str] = []
        self.grades: list[str] = []
        self.warnings: list[str] = []
        self.ends: list[Trial] = []
        self._ended: queue.SimpleQueue[Trial] = queue.SimpleQueue()
        self._made = 0
        self._closed = False
        self.engine = Engine(width, on_end=self._on_end, warn=self.warnings.append)
        self._app = App(
            run_case=self._counted(run_case, self.runs),
            grade_case=self._counted(grade_case, self.grades),
            perf=perf,
            grade_is_async=inspect.iscoroutinefunction(grade_case),
            reference=reference,
            signal=signal,
            settings=settings,
            state=state,
        )

    def trials(self, *ids: str, reps: int = 1) -> list[Trial]:
        """Return new trials that are not queued yet, at the positions that follow."""
        executions = plan([Case(id=id_, prompt=f"prompt of {id_}") for id_ in ids], reps)
        trials = [Trial(each, self._app, self.engine, self._made + n) for n, each in enumerate(executions)]
        self._made += len(trials)
        return trials

    def start(self, *ids: str, reps: int = 1) -> list[Trial]:
        """Return new trials, queued."""
        trials = self.trials(*ids, reps=reps)
        self.engine.add(trials)
        return trials

    def wait(self, trials: list[Trial]) -> None:
        """Wait until all *trials* have ended."""
        deadline = time.monotonic() + PATIENCE_S
        while not all(trial in self.ends for trial in trials):
            try:
                self.ends.append(self._ended.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                pytest.fail(f"trials that do not end: {[t.execution.label for t in trials if t not in self.ends]}")

    def outcomes(self, *ids: str, reps: int = 1) -> dict[str, Outcome]:
        """Run new trials to their end and return their outcomes by case id, or by label with more than one rep."""
        trials = self.start(*ids, reps=reps)
        self.wait(trials)
        return {t.execution.case.id if reps == 1 else t.execution.label: outcome_of(t) for t in trials}

    def outcome(self) -> Outcome:
        """Run one new trial to its end."""
        return self.outcomes("only")["only"]

    def close(self, *, hurried: bool = False) -> float:
        """Close the engine, once, and return how long that took; take note of what ended with it."""
        began = time.monotonic()
        if not self._closed:
            self._closed = True
            self.engine.close(hurried=hurried)
        took = time.monotonic() - began
        while not self._ended.empty():
            self.ends.append(self._ended.get())
        return took

    def _on_end(self, trial: Trial) -> None:
        self._ended.put(trial)

    def _counted(self, function: Callable[..., object], calls: list[str]) -> Callable[..., Any]:
        def call(case: Case, *arguments: Any) -> object:
            calls.append(case.id)
            return function(case, *arguments)

        return call


def outcome_of(trial: Trial) -> Outcome:
    assert trial.outcome is not None
    return trial.outcome


def row_of(outcome: Outcome) -> dict[str, Any]:
    assert outcome.row is not None
    return outcome.row


def eventually(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait until *condition* holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "does not come true"
        time.sleep(0.005)


def either(is_async: bool, function: RunCase) -> RunCase:
    """Return *function* as it is, or as a coroutine function that yields to its loop once."""
    if not is_async:
        return function

    async def run_case(case: Case, ctx: Context) -> object:
        await asyncio.sleep(0)
        value = function(case, ctx)
        return await value if isinstance(value, Awaitable) else value

    return run_case
