"""What is about to run, printed before anything is spent; and the plan, printed instead of running."""

from __future__ import annotations

import os
from typing import Any

import pytest

from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.report.terminal import one_line, plural
from pytest_hillclimb.wiring.collect import LOADED, TrialItem
from pytest_hillclimb.wiring.log import RunLog
from pytest_hillclimb.wiring.run import EvalRun


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
        log = RunLog((item.nodeid, item.execution) for item in session.items if isinstance(item, TrialItem))
        print_scope(config, run, log)
        for entry in log.entries:
            state = "recorded" if entry.execution.key in run.recorded.rows else "to run"
            print_line(config, f"  {state:<8}  {typed_id(config, entry.nodeid)}")
        print_line(config, "hillclimb: --hillclimb-plan was given, nothing is run")
        return True


def print_scope(config: pytest.Config, run: EvalRun, log: RunLog) -> None:
    """Print what is about to run: what was planned, what of it was selected, and what will be paid for."""
    for line in _scope_lines(config, run, log):
        print_line(config, line)


def print_line(config: pytest.Config, line: str) -> None:
    """Print a line of its own on the terminal."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.write_line(line)


def typed_id(config: pytest.Config, nodeid: str) -> str:
    """Return a node id as it would be typed where pytest was started."""
    path, separator, names = nodeid.partition("::")
    return f"{os.path.relpath(config.rootpath / path, config.invocation_params.dir)}{separator}{names}"


def _scope_lines(config: pytest.Config, run: EvalRun, log: RunLog) -> list[str]:
    settings, loaded = run.settings, config.stash[LOADED]
    recorded = sum(entry.execution.key in run.recorded.rows for entry in log.entries)
    cases = len(loaded.entries)
    lines = [
        f"hillclimb: {plural(cases, 'case')} x {plural(settings.reps, 'rep')} = "
        f"{plural(len(loaded.executions), 'execution')}, {len(log)} selected: "
        f"{recorded} recorded, {len(log) - recorded} to run",
        f"hillclimb: variant {settings.variant}, model {one_line(settings.model or 'not asked for')}, "
        f"{_width(config, settings)}, ceiling {_ceiling(settings.timeout)}",
    ]
    if settings.fresh:
        lines.append(f"hillclimb: fresh: nothing is recorded, rows go to {one_line(run.results_path)}")
    notes = list(loaded.notes)
    if run.recorded.errors:
        notes.append(
            f"run again, as their status is error and they hold no score: {plural(run.recorded.errors, 'row')}"
        )
    if run.recorded.broken:
        notes.append(f"ignored, as they hold no row: {plural(run.recorded.broken, 'line')} of {run.results_path.name}")
    if not settings.is_baseline and not run.has_references():
        notes.append("the baseline has frozen no references: graders get ref=None")
    return [*lines, *(f"hillclimb: note: {one_line(note)}" for note in notes)]


def _width(config: pytest.Config, settings: Settings) -> str:
    workers = len(config.option.tx or ()) if config.pluginmanager.has_plugin("dsession") else 0
    return f"{plural(workers, 'worker')} with one trial each" if workers else f"concurrency {settings.concurrency}"


def _ceiling(seconds: float) -> str:
    return f"{seconds:g} s" if seconds else "none"
