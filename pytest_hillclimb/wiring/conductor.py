"""A session in one process: trials run ahead, while pytest's own protocol stays serial.

An item's body waits for its trial (``ahead`` says which trials are started before). Under ``-x``, ``--maxfail`` and
``--stepwise`` none is started once enough have failed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from time import monotonic
from typing import Any

import pytest

from pytest_hillclimb.engine.engine import Engine
from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.engine.trial import Trial
from pytest_hillclimb.errors import RefusedError
from pytest_hillclimb.report.terminal import one_line
from pytest_hillclimb.schedule.plan import Execution
from pytest_hillclimb.wiring.activation import usage_error
from pytest_hillclimb.wiring.ahead import RunAhead
from pytest_hillclimb.wiring.collect import TrialItem
from pytest_hillclimb.wiring.log import RunLog
from pytest_hillclimb.wiring.output import OutputRouting
from pytest_hillclimb.wiring.presenting import Presenter
from pytest_hillclimb.wiring.run import EvalRun
from pytest_hillclimb.wiring.scope import print_line, print_scope, selection_facts
from pytest_hillclimb.wiring.trials import TrialMaker

_GRACE_S = 3.0
_WAIT_S = 0.05
_PROGRESS_EVERY_S = 30.0


class Conductor:
    """Starts trials, hands their outcomes to their items, and closes the account at the end."""

    def __init__(self, config: pytest.Config, run: EvalRun) -> None:
        self.evals = run
        self.stop_reason: str | None = None
        self.engine: Engine | None = None
        self.log = RunLog()
        self.abandoned = 0
        self.may_hold_exit = False
        self._config = config
        self.ledger = run.campaign.ledger()
        self._maker = TrialMaker(run.campaign, run.state.raw, run.reference)
        self._routing = OutputRouting(config, run.campaign.redactor.text)
        self._ahead: RunAhead | None = None
        self._max_red = _max_failures(config)
        self._reds = 0
        self._judging = threading.Lock()
        self._exit: Outcome | None = None
        self._told_at = 0.0
        self._notices: list[str] = []
        self.hurried = False

    # --- the session --------------------------------------------------------------------------------------------------

    @property
    def opened(self) -> bool:
        """Whether the run was begun."""
        return self.engine is not None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Iterator[None]:
        """Open the run before the first item and settle it after the last."""
        self.log = RunLog((item.nodeid, item.execution) for item in session.items if isinstance(item, TrialItem))
        if self._config.option.collectonly or not len(self.log):
            return (yield)
        self._start(session)
        try:
            return (yield)
        finally:
            self._settle()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what pytest skips on its own, or what fails in a fixture, unless the run has stopped itself."""
        entry = self.log.at(report.nodeid) if self.stop_reason is None else None
        if entry is None or entry.outcome is not None:
            return
        if report.skipped:
            entry.skipped = True
            self._running().skip(entry.execution.key)
        elif report.failed and (reason := self._running().never_begun(entry.execution.label)) is not None:
            self._stop(reason)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Close the account: what is in flight has had its grace, what has ended is on disk."""
        if self.engine is None:
            self.evals.close()
            return
        with suppress(KeyboardInterrupt), self.evals.interrupts.held():  # the session ends anyway
            try:
                self.engine.close(hurried=self.hurried)
                self._routing.stop()
            finally:
                self.evals.close()
        self.abandoned, self.may_hold_exit = self.engine.abandoned, self.engine.left_calls
        if session.exitstatus == pytest.ExitCode.OK and (
            self.evals.failed or self.stop_reason or self.evals.tally.withheld or self.evals.inconclusive
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _start(self, session: pytest.Session) -> None:
        for position, item in enumerate(session.items):
            if isinstance(item, TrialItem):
                item.position = position
        settings = self.evals.settings
        selection = selection_facts(settings, len(self.log))
        try:
            self.evals.campaign.check(self.log.unrecorded(self.evals.recorded.rows))
            self.evals.open(on_failure=self._stop, selection=selection)
        except RefusedError as error:
            raise usage_error(error) from None
        open_entries = [e for e in self.log.entries if e.execution.key not in self.evals.recorded.rows]
        for entry in open_entries:
            entry.skipped = self._refusal(entry.execution) is not None
        self.evals.tally.to_run = sum(not entry.skipped for entry in open_entries)
        self._told_at = monotonic()
        print_scope(self._config, self.evals, self.log)
        self.engine = Engine(
            settings.concurrency,
            on_end=self._on_end,
            warn=self.evals.warnings.append,
            notice=self._notices.append,
            ledger=self.ledger,
            pace=self.evals.writer.wait_for_room,
        )
        positions = {item.execution.key: item.position for item in session.items if isinstance(item, TrialItem)}
        to_run = {e.execution.key: positions[e.execution.key] for e in open_entries if not e.skipped}
        self._ahead = RunAhead(
            self.evals, self._maker, self.engine, items=session.items, to_run=to_run, narrow=bool(self._max_red)
        )
        self._routing.start()

    def _settle(self) -> None:
        """Start nothing more, and give what is in flight a short grace to end and be recorded."""
        if self.engine is None:
            return
        with self.evals.interrupts.held():
            self.engine.stop()
            deadline = monotonic() + _GRACE_S
            while not self.engine.wait_idle(_WAIT_S) and monotonic() < deadline:
                if self.evals.interrupts.pending:
                    self.hurried = True
                    break

    # --- one item -----------------------------------------------------------------------------------------------------

    def run(self, item: TrialItem) -> None:
        """Wait for the trial of the item in front and report what it ended as; the item's set-up has passed."""
        if item.outcome is None:
            item.outcome = self.evals.earlier_outcome(item.execution)
            if item.outcome is not None:
                self.log.note(item.execution.key, item.outcome)
        if item.outcome is None and (refusal := self._refusal(item.execution)) is not None:
            pytest.skip(refusal)
        if item.outcome is None:
            self._routing.adopt()
            with self.evals.interrupts.held():
                item.outcome = self._outcome(item)
        Presenter(self._config, self.evals.campaign, self.evals.variant_path).present(item, item.outcome)

    def _outcome(self, item: TrialItem) -> Outcome:
        ahead = self._running()
        trial = item.trial = ahead.trial(item)
        if self.stop_reason is None:
            ahead.reach(item)
        return self._wait(trial)

    def _wait(self, trial: Trial) -> Outcome:
        while True:
            if self._exit is not None:
                pytest.exit(one_line(self._exit.reason), returncode=self._exit.returncode)
            outcome = trial.outcome
            if outcome is not None and outcome.recorded:
                return outcome
            if self.stop_reason is not None and not trial.taken:
                pytest.skip(f"not run: {one_line(self.stop_reason)}")
            if self.evals.interrupts.pending:
                raise KeyboardInterrupt
            self.evals.writer.wait_until(lambda: trial.outcome is not None and trial.outcome.recorded, _WAIT_S)
            self._tell_progress()

    def _refusal(self, execution: Execution) -> str | None:
        return self.evals.campaign.refusal(execution.candidate)

    def _engine(self) -> Engine:
        if self.engine is None:
            raise RuntimeError("the run was not begun")
        return self.engine

    def _running(self) -> RunAhead:
        if self._ahead is None:
            raise RuntimeError("an execution was run outside of pytest's own loop")
        return self._ahead

    # --- called from other threads ------------------------------------------------------------------------------------

    def _on_end(self, trial: Trial) -> None:
        outcome = trial.outcome
        if outcome is None:
            return
        try:
            with self._judging:  # before the item in front hears of it, which has the next one started
                self.log.note(outcome.key, outcome)
                self._judge(outcome)
        finally:
            self.evals.writer.put(outcome)

    def _judge(self, outcome: Outcome) -> None:
        """Decide what the outcome means for the trials that have not started."""
        self._reds += outcome.is_red(self.evals.settings.fail_on)
        if self._max_red and self._reds >= self._max_red:
            self._engine().hold()
        if outcome.kind is Kind.EXIT:
            self._exit = outcome
            self._engine().stop()
        reason = outcome.stop_reason or self._running().judge(outcome)
        if reason is not None:
            self._stop(reason)

    def _stop(self, reason: str) -> None:
        self._engine().stop()  # first: only then is it settled which trials were started
        if self.stop_reason is None:
            self.stop_reason = reason

    def _tell_progress(self) -> None:
        lines = [f"hillclimb: {one_line(self._notices.pop(0))}" for _ in list(self._notices)]
        if (now := monotonic()) - self._told_at >= _PROGRESS_EVERY_S:
            self._told_at = now
            lines.append(self.evals.progress_line())
        if not lines:
            return
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
            for line in lines:
                print_line(self._config, line)


def _max_failures(config: pytest.Config) -> int:
    """Return after how many red items pytest stops, 0 for never."""
    if config.getoption("stepwise", False) or config.getoption("stepwise_skip", False):
        return 1
    return int(config.getoption("maxfail", 0) or 0)
