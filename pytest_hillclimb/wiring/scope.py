"""What is about to run, printed before anything is spent; and the plan, printed instead of running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_hillclimb.report.terminal import one_line
from pytest_hillclimb.wiring.collect import LOADED, TrialItem
from pytest_hillclimb.wiring.run import EvalRun


def print_scope(config: pytest.Config, run: EvalRun, items: Sequence[TrialItem]) -> None:
    """Print the resolved scope of a run."""
    for line in scope_lines(config, run, items):
        _print(config, line)


class PlanOnly:
    """Prints what would run instead of running it."""

    def __init__(self, run: EvalRun) -> None:
        self._run = run

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Print the scope and one line for each execution; run nothing, ordinary tests included."""
        config, run = session.config, self._run
        if config.option.collectonly:
            return None
        items = [item for item in session.items if isinstance(item, TrialItem)]
        print_scope(config, run, items)
        for item in items:
            state = "recorded" if item.execution.key in run.recorded.rows else "to run"
            _print(config, f"  {state:<8}  {item.nodeid}")
        _print(config, "hillclimb: --hillclimb-plan was given, nothing is run")
        return True


def scope_lines(config: pytest.Config, run: EvalRun, items: Sequence[TrialItem]) -> list[str]:
    """Return the scope in words: what was planned, what of it was selected, and what will be paid for."""
    settings, loaded = run.settings, config.stash[LOADED]
    recorded = sum(item.execution.key in run.recorded.rows for item in items)
    cases = len(loaded.entries)
    lines = [
        f"hillclimb: {cases} {'case' if cases == 1 else 'cases'} x {settings.reps} {_reps(settings.reps)} = "
        f"{len(loaded.executions)} executions, {len(items)} selected: "
        f"{recorded} recorded, {len(items) - recorded} to run",
        f"hillclimb: variant {settings.variant}, model {one_line(settings.model or 'not asked for')}, "
        f"concurrency {settings.concurrency}, ceiling {_ceiling(settings.timeout)}",
    ]
    notes = list(loaded.notes)
    if run.recorded.errors:
        notes.append(f"{run.recorded.errors} recorded rows have the status error and hold no score: they are run again")
    if run.recorded.broken:
        notes.append(f"{run.recorded.broken} lines of {one_line(run.results_path)} hold no row and are ignored")
    if not settings.is_baseline and not run.has_references():
        notes.append("the baseline has frozen no references: graders get ref=None")
    return [*lines, *(f"hillclimb: note: {one_line(note)}" for note in notes)]


def _reps(count: int) -> str:
    return "rep" if count == 1 else "reps"


def _ceiling(seconds: float) -> str:
    return f"{seconds:g} s" if seconds else "none"


def _print(config: pytest.Config, line: str) -> None:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(line)
