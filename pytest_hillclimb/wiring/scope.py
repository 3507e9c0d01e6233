"""What is about to run, printed before anything is spent; and the plan, printed instead of running."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.errors import RefusedError
from pytest_hillclimb.model.settings import CHAOS, Settings
from pytest_hillclimb.report.coverage import coverage_lines
from pytest_hillclimb.report.terminal import one_line, plural
from pytest_hillclimb.schedule.coverage import coverage
from pytest_hillclimb.schedule.plan import Execution
from pytest_hillclimb.wiring.cases import LoadedCases
from pytest_hillclimb.wiring.collect import LOADED, TrialItem
from pytest_hillclimb.wiring.log import RunLog
from pytest_hillclimb.wiring.run import EvalRun
from pytest_hillclimb.wiring.shares import planned_workers


class PlanOnly:
    """Prints what would run instead of running it.

    :param workers: among how many processes the run would share its ceiling
    """

    def __init__(self, run: EvalRun, workers: int = 1) -> None:
        self._run = run
        self._workers = workers

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
            if state == "to run" and run.campaign.refusal(entry.execution.candidate) is not None:
                state = "skipped"
            id_ = entry.execution.execution_id
            print_line(config, f"  {state:<8}  {typed_id(config, entry.nodeid)}{f'  {id_}' if id_ else ''}")
        for line in _coverage_lines(config, run):
            print_line(config, line)
        print_line(config, "hillclimb: --hillclimb-plan was given, nothing is run")
        try:
            run.campaign.check(log.unrecorded(run.recorded.rows), self._workers)
        except RefusedError as error:
            why = one_line(run.campaign.redactor.text(str(error)))
            print_line(config, f"hillclimb: note: this run would be refused: {why}")
        return True


def _coverage_lines(config: pytest.Config, run: EvalRun) -> list[str]:
    """Return what the schedule covers in a cycle; nothing without candidates."""
    manifest, settings = run.campaign.manifest, run.settings
    if manifest is None:
        return []
    cases = [entry.case for entry in config.stash[LOADED].entries]
    return coverage_lines(coverage(cases, manifest, settings.schedule, rotates=settings.rotation is not None))


def print_scope(config: pytest.Config, run: EvalRun, log: RunLog) -> None:
    """Print what is about to run: what was planned, what of it was selected, and what will be paid for."""
    for line in _scope_lines(config, run, log):
        print_line(config, run.campaign.redactor.text(line))


def selection_facts(settings: Settings, executions: int) -> dict[str, Any]:
    """Return what was selected, as ``run.json`` records it."""
    chosen = {"cases": list(settings.case), "limit": settings.limit, "executions": executions}
    return {**chosen, "candidates": list(settings.candidate)} if settings.candidates is not None else chosen


def print_line(config: pytest.Config, line: str) -> None:
    """Print a line of its own on the terminal."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.write_line(line)


def shown_path(config: pytest.Config, path: Path) -> str:
    """Return a path as seen from where pytest was started."""
    return one_line(os.path.relpath(path, config.invocation_params.dir))


def typed_id(config: pytest.Config, nodeid: str) -> str:
    """Return a node id as it would be typed where pytest was started."""
    path, separator, names = nodeid.partition("::")
    return f"{os.path.relpath(config.rootpath / path, config.invocation_params.dir)}{separator}{names}"


def _scope_lines(config: pytest.Config, run: EvalRun, log: RunLog) -> list[str]:
    settings, loaded = run.settings, config.stash[LOADED]
    recorded = sum(entry.execution.key in run.recorded.rows for entry in log.entries)
    refused = {e.execution.key: reason for e in log.entries if (reason := run.campaign.refusal(e.execution.candidate))}
    skipped = len(refused.keys() - run.recorded.rows.keys())
    lines = [
        f"hillclimb: {_planned(loaded, settings)} = {plural(len(loaded.executions), 'execution')}, "
        f"{len(log)} selected: {recorded} recorded, "
        f"{f'{skipped} skipped, ' if skipped else ''}{len(log) - recorded - skipped} to run",
        f"hillclimb: variant {settings.variant}, {_tested(run)}, "
        f"{_width(config, settings)}, timeout {_timeout(settings.timeout)}",
    ]
    planned = settings.plan and loaded.manifest is not None
    if (planned or run.campaign.ceiling is not None) and len(log) > recorded + skipped:
        lines.append(_money_line(config, run, log))
    if settings.canary is not None:
        lines.append(_canary_line(config, settings.canary))
    if settings.fresh:
        lines.append(f"hillclimb: fresh: nothing is recorded, rows go to {one_line(run.results_path)}")
    notes = [*loaded.notes, *sorted(set(refused.values())), *_out_of_reach(config, run, log)]
    if run.other_matrix:
        notes.append(
            "this variant holds rows of another rotation, schedule or seed: what they fill is not run again, and keeps "
            "its execution id; give each campaign a variant or a flow of its own"
        )
    if run.recorded.errors:
        notes.append(
            f"run again, as their status is error and they hold no score: {plural(run.recorded.errors, 'row')}"
        )
    if run.recorded.broken:
        notes.append(f"ignored, as they hold no row: {plural(run.recorded.broken, 'line')} of {run.results_path.name}")
    if not settings.is_baseline and settings.lane != CHAOS and not run.has_references():
        notes.append("the baseline has frozen no references: graders get ref=None")
    return [*lines, *(f"hillclimb: note: {one_line(note)}" for note in notes)]


def _planned(loaded: LoadedCases, settings: Settings) -> str:
    """Return what the plan is made of."""
    cases, manifest = plural(len(loaded.entries), "case"), loaded.manifest
    if manifest is None:
        return f"{cases} x {plural(settings.reps, 'rep')}"
    active = {e.candidate.id for e in loaded.executions if e.candidate is not None}
    turn = "" if settings.rotation is None else f", rotation {settings.rotation % manifest.schedule.cycle}"
    return f"{cases}, {plural(len(active), 'active candidate')}, {_schedule(settings)}{turn}"


def _schedule(settings: Settings) -> str:
    return "chaos lane" if settings.lane == CHAOS else f"schedule {settings.schedule}"


def _tested(run: EvalRun) -> str:
    settings = run.settings
    if run.campaign.manifest is not None and settings.candidates is not None:
        return f"candidates of {one_line(settings.candidates.name)}, seed {one_line(settings.seed, 60)}"
    return f"model {one_line(settings.model or 'not asked for')}"


def _money_line(config: pytest.Config, run: EvalRun, log: RunLog) -> str:
    """Return what is about to be spent at worst, against the ceiling."""
    ceiling = run.campaign.ceiling
    worst = run.campaign.worst_case_total(_paying(run, log))
    unknown = f" and {plural(worst.unknown, 'execution')} of unknown cost" if worst.unknown else ""
    line = f"hillclimb: worst case {worst.usd:.2f} USD{unknown}"
    if ceiling is None:
        return f"{line}, no cost ceiling"
    each = f" ({ceiling / workers:g} for each worker)" if (workers := _workers(config)) else ""
    warning = "; it may end before all are run" if worst.usd > ceiling else ""
    return f"{line}, cost ceiling {ceiling:g} USD{each}{warning}"


def _out_of_reach(config: pytest.Config, run: EvalRun, log: RunLog) -> list[str]:
    """Say which candidates the ceiling, or a worker's share of it, keeps from being measured at all."""
    ceiling, workers = run.campaign.ceiling, _workers(config)
    found = run.campaign.out_of_reach(_paying(run, log), workers or 1)
    if ceiling is None or not found:
        return []
    whose = f"a worker's share of {ceiling / workers:g} USD" if workers else f"the ceiling of {ceiling:g} USD"
    told = ", ".join(f"{who} may cost {cost:g} USD" for who, cost in found.items())
    return [f"never measured, as one execution may cost more than {whose}: {told}"]


def _paying(run: EvalRun, log: RunLog) -> list[Execution]:
    """Return what is to be run and not skipped."""
    to_run = log.unrecorded(run.recorded.rows)
    return [execution for execution in to_run if run.campaign.refusal(execution.candidate) is None]


def _canary_line(config: pytest.Config, count: int) -> str:
    first = f"the first {count} executions" if count > 1 else "the first execution"
    if _workers(config):
        return f"hillclimb: canary: if {first}, or what ends before, cannot be measured, nothing more is started"
    return f"hillclimb: canary: {first} alone; the others only if {'these' if count > 1 else 'it'} can be measured"


def _width(config: pytest.Config, settings: Settings) -> str:
    workers = _workers(config)
    return f"{plural(workers, 'worker')} with one trial each" if workers else f"concurrency {settings.concurrency}"


def _workers(config: pytest.Config) -> int:
    return planned_workers(config.option) if config.pluginmanager.has_plugin("dsession") else 0


def _timeout(seconds: float) -> str:
    return f"{seconds:g} s" if seconds else "none"
