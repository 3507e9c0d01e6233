"""The objects of an active session, registered by role before the first conftest is imported."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import pytest

from pytest_hillclimb.errors import RefusedError
from pytest_hillclimb.flow.layout import FlowDir
from pytest_hillclimb.flow.statefile import read_state, record_approval
from pytest_hillclimb.model.settings import MAIN, NULL, PROBES
from pytest_hillclimb.model.state import LoopState
from pytest_hillclimb.report.terminal import one_line, plural
from pytest_hillclimb.wiring import hooks
from pytest_hillclimb.wiring.activation import Activation, usage_error
from pytest_hillclimb.wiring.campaign import Campaign
from pytest_hillclimb.wiring.cases import LoadedCases, load
from pytest_hillclimb.wiring.collect import LOADED, RUN_ITEM, Collection, EmptyRun
from pytest_hillclimb.wiring.conductor import Conductor
from pytest_hillclimb.wiring.controller import Controller
from pytest_hillclimb.wiring.gate import short
from pytest_hillclimb.wiring.lanes import hooks_of
from pytest_hillclimb.wiring.presenting import Reporting
from pytest_hillclimb.wiring.run import EvalRun
from pytest_hillclimb.wiring.scope import PlanOnly, shown_path
from pytest_hillclimb.wiring.shares import planned_workers
from pytest_hillclimb.wiring.table import table_lines

_EXIT_PATIENCE_S = 3.0
_LOOK_EVERY_S = 0.2


def register(config: pytest.Config, activation: Activation) -> None:
    """Register the session's objects with pytest."""
    config.pluginmanager.register(EvalSession(activation), "hillclimb-session")


class EvalSession:
    """Checks hooks as they appear, loads the cases before collection, and reports on the session as a whole."""

    def __init__(self, activation: Activation) -> None:
        self._activation = activation
        self._owner: Conductor | Controller | None = None
        self._workers = 1

    def pytest_plugin_registered(self, plugin: object) -> None:
        """Refuse a hook whose name is unknown."""
        try:
            hooks.check_names(plugin)
        except RefusedError as error:
            raise usage_error(error) from None

    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Keep a plan in this process, as workers would have nothing to do; pytest-xdist has counted them before."""
        if self._activation.settings.plan:
            self._workers = planned_workers(config.option)
            config.option.numprocesses, config.option.dist, config.option.tx = 0, "no", []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Load and check all cases, then record an approval that was asked for."""
        config, activation = session.config, self._activation
        settings = activation.settings
        try:
            with FlowDir(settings.flow_base, settings.flow) as flow:
                state = LoopState.parse(read_state(flow.find()))
            loaded = load(config, activation, state)
            hooks.check_present(config, loaded.by_file, hooks_of(settings.lane))
            campaign = Campaign.of(config, settings, state.raw, loaded.manifest)
            run = EvalRun(activation, state, campaign, tells_all=config.get_verbosity() >= 1)
            if not config.option.collectonly:
                run.look()
            if activation.approving:
                with FlowDir(settings.flow_base, settings.flow) as flow:
                    record_approval(flow.make(), activation.harness.sha)
        except RefusedError as error:
            raise usage_error(error, config.getini("hillclimb_redact")) from None
        config.stash[LOADED] = loaded
        for part in self._parts(config, loaded, run):
            config.pluginmanager.register(part)

    def _parts(self, config: pytest.Config, loaded: LoadedCases, run: EvalRun) -> list[object]:
        """Return the objects that play this session's role: planner, controller of workers, or sole process."""
        settings, reporting = self._activation.settings, Reporting(run.campaign.redactor)
        if config.pluginmanager.has_plugin("dsession"):
            self._owner = Controller(config, self._activation, loaded, run)
            return [self._owner, reporting]
        collecting = [Collection(settings, loaded), EmptyRun(self._activation), reporting]
        if settings.plan:
            return [*collecting, PlanOnly(run, self._workers)]
        conductor = self._owner = Conductor(config, run)
        config.stash[RUN_ITEM] = conductor.run
        return [*collecting, conductor]

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        """Say what is measured, by which harness, and where it goes."""
        activation = self._activation
        settings, harness = activation.settings, activation.harness
        state = "approved now" if activation.approving else "approved"
        if config.option.collectonly and not activation.approving:
            state = "not checked"
        lines = [
            f"hillclimb: variant {settings.variant}, eval {shown_path(config, activation.eval_root)}, "
            f"harness {short(harness.sha)} {state} ({plural(len(harness.files), 'file')}), "
            f"flow {shown_path(config, settings.records_path)}",
            *_lane_lines(activation),
        ]
        return [*lines, *(f"hillclimb: note: {one_line(note)}" for note in self._notes(config))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print the table of the run."""
        owner = self._owner
        if owner is None or not owner.opened:
            return
        settings = owner.evals.settings
        lane = f" ({settings.lane})" if settings.lane != MAIN else ""
        terminalreporter.write_sep("=", f"hillclimb: {settings.variant}{lane}")
        for line in table_lines(owner, config):
            terminalreporter.write_line(owner.evals.campaign.redactor.text(line))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """See to it that the process ends although calls of user code were left behind."""
        if isinstance(self._owner, Conductor) and self._owner.may_hold_exit:
            patience = 0.0 if self._owner.hurried else _EXIT_PATIENCE_S
            threading.Thread(target=_end_process, args=(session, patience), name="hillclimb-exit", daemon=True).start()

    def _notes(self, config: pytest.Config) -> list[str]:
        harness = self._activation.harness
        notes = []
        if config.inipath is None:
            notes.append("there is no ini file: the harness digest depends on the directory pytest is started from")
        outside = hooks.outside_digest(config, harness.files)
        if outside:
            notes.append(f"hooks from outside of the harness digest: {', '.join(outside)} (see harness_paths)")
        if config.pluginmanager.has_plugin("dsession"):
            notes += _notes_on_workers(config)
        if harness.missing:
            notes.append(f"harness_paths that do not exist: {', '.join(harness.missing)}")
        return notes


def _lane_lines(activation: Activation) -> list[str]:
    """Say of a check of the grader what it is, and what it does without."""
    lane, names = activation.settings.lane, activation.withheld
    if lane not in PROBES:
        return []
    answers = "an empty answer, which the grader must fail" if lane == NULL else "the expected answer, which must pass"
    without = f"; without {', '.join(one_line(name, 80) for name in names)}" if names else ""
    return [f"hillclimb: {lane} check: the app is not called, every case gets {answers}{without}"]


def _notes_on_workers(config: pytest.Config) -> list[str]:
    notes = []
    if config.option.hillclimb_concurrency is not None or config.getini("hillclimb_concurrency"):
        notes.append("workers run one trial at a time; --hillclimb-concurrency is for a session without workers")
    if config.option.dist == "loadgroup":
        notes.append("--dist loadgroup does not keep groups together on pytest 9.2 and later")
    if config.option.dist == "worksteal" and config.getoption("maxfail", 0):
        notes.append("with --dist worksteal, workers go on with what they have queued after -x or --maxfail")
    return notes


def _end_process(session: pytest.Session, patience: float) -> None:
    """End the process a little after its main thread, if threads of abandoned calls keep it from ending.

    Such threads may belong to the user's own executors, which Python joins at its exit.
    """
    while threading.main_thread().is_alive() and not getattr(threading, "_SHUTTING_DOWN", False):
        time.sleep(_LOOK_EVERY_S)
    time.sleep(patience)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(session.exitstatus))
