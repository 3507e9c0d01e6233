"""The controller of pytest-xdist: the one writer of a session whose executions run in workers.

Workers send outcomes home on reports; here each is recorded once and dropped from its report. A worker that dies costs
the execution it was running: an errors row says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from queue import Empty
from time import monotonic
from typing import Any

import pytest

from pytest_hillclimb.engine.concluding import failed_without_trial
from pytest_hillclimb.engine.ends import WorkerLost
from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.errors import OptionError, RefusedError
from pytest_hillclimb.flow.layout import ERRORS
from pytest_hillclimb.report.detail import headline, unmeasured
from pytest_hillclimb.report.terminal import one_line
from pytest_hillclimb.schedule.plan import Execution
from pytest_hillclimb.wiring.activation import Activation, usage_error
from pytest_hillclimb.wiring.canary import Canary
from pytest_hillclimb.wiring.cases import LoadedCases
from pytest_hillclimb.wiring.failures import TrialRepr
from pytest_hillclimb.wiring.log import RunLog
from pytest_hillclimb.wiring.pauses import SharedPause
from pytest_hillclimb.wiring.run import EvalRun
from pytest_hillclimb.wiring.scheduling import mended
from pytest_hillclimb.wiring.scope import print_line, print_scope, selection_facts
from pytest_hillclimb.wiring.shares import Shares, planned_workers
from pytest_hillclimb.wiring.wire import VARIANT_PATH, decode_outcome, encode_plan, plan_of
from pytest_hillclimb.wiring.worker import INPUT, PAUSE, SHARE

_PROGRESS_EVERY_S = 30.0
_NOTICED_PAUSE_S = 1.0
_NAMES = re.compile(
    r"::([A-Za-z0-9._-]+)::((?:[A-Za-z0-9._-]+/)?rep[0-9]+)(?:@.*)?\Z", re.DOTALL
)  # --dist loadgroup adds @ and the group
_STOPPED = (pytest.ExitCode.OK, pytest.ExitCode.INTERRUPTED)
_GRACE_S = 4.0  # a little more than a worker gives to what it has in flight


class Controller:
    """Hands the plan to workers, records what comes home, and closes the account at the end."""

    def __init__(self, config: pytest.Config, activation: Activation, loaded: LoadedCases, run: EvalRun) -> None:
        self.evals = run
        self.log = RunLog()
        self.stop_reason: str | None = None
        self.opened = False
        self.abandoned = 0
        self._config = config
        self._activation = activation
        self._loaded = loaded
        self._by_name = {(e.case.safe_id, e.name): e for e in loaded.executions}
        self._plan: str | None = None
        self._begun: dict[str, float] = {}
        self._told_at = monotonic()
        self._exit: Outcome | None = None
        self._interrupted = False
        self._shares: Shares | None = None
        self._pause = SharedPause()
        self._paused_until = 0.0
        self._canary = Canary(None)
        if config.option.maxschedchunk is None:
            # Otherwise a worker goes on to pay for dozens of queued executions after whatever ends the run.
            config.option.maxschedchunk = 1

    # --- to the workers -----------------------------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker, or its replacement, the plan of the session."""
        if self._plan is None:
            self._plan = encode_plan(plan_of(self._config, self._activation, self._loaded, self.evals))
        node.workerinput[INPUT] = self._plan
        node.workerinput[PAUSE] = str(self._pause.path)
        if (ceiling := self.evals.campaign.ceiling) is not None:
            self._shares = self._shares or Shares(ceiling, len(node.nodemanager.specs))
            node.workerinput[SHARE] = self._shares.give(node.gateway.id)

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_xdist_make_scheduler(self) -> Generator[None, Any, Any]:
        """Mend the schedulers that hand out whole scopes."""
        return mended((yield))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Open the run once it is known what was selected, before anything is scheduled."""
        if self.opened:
            return
        selected = [(nodeid, execution) for nodeid in ids if (execution := self._execution(nodeid)) is not None]
        if not selected:
            if self._activation.by_option and not ids and not _deselects(self._config):
                looked = ", ".join(one_line(path) for path in self._activation.searched)
                raise usage_error(OptionError(f"no execution of the eval was collected below {looked}"))
            return
        self._open(RunLog(selected))

    def _open(self, log: RunLog) -> None:
        self.log, run, settings = log, self.evals, self.evals.settings
        known = set(run.recorded.rows)
        selection = selection_facts(settings, len(log))
        try:
            run.campaign.check(log.unrecorded(known), planned_workers(self._config.option))
            run.open(on_failure=self._stop, selection=selection)
            if known != set(run.recorded.rows):
                raise RefusedError("another session has recorded rows since this one started; run again to continue")
        except RefusedError as error:
            raise usage_error(error) from None
        self.opened = True
        for entry in log.entries:
            earlier = run.earlier_outcome(entry.execution)
            if earlier is not None:
                log.note(entry.execution.key, earlier)
        for entry in log.untried:
            entry.skipped = run.campaign.refusal(entry.execution.candidate) is not None
        run.tally.to_run = len(log.untried)
        self._canary = Canary(settings.canary, {entry.execution.key: n for n, entry in enumerate(log.untried)})
        print_scope(self._config, run, log)

    # --- from the workers ---------------------------------------------------------------------------------------------

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note when an item was begun, for the case that its worker dies."""
        self._begun[nodeid] = monotonic()
        self._tell_progress()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Forget an item that has ended."""
        self._begun.pop(nodeid, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record the outcome that a report carries, and drop it from the report."""
        wire = report.__dict__.pop("hillclimb_outcome", None)
        if wire is not None:
            self._take(decode_outcome(wire), report.node)
        gist = report.__dict__.pop("hillclimb_gist", None)
        if gist is not None and isinstance(report.longrepr, str):
            report.longrepr = TrialRepr(gist, report.longrepr.replace(VARIANT_PATH, self._shown()).split("\n"))
        entry = self.log.at(report.nodeid) if self.stop_reason is None else None
        if entry is not None and entry.outcome is None and report.skipped:
            entry.skipped = True
        elif entry is not None and entry.outcome is None and report.failed:
            self._stop(self._canary.never_begun(entry.execution.label))
        self._tell_progress()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take the outcomes for which a worker had no report to send."""
        if error is not None and self._shares is not None:
            self._shares.lose(node.gateway.id)
        output = getattr(node, "workeroutput", None) or {}
        for wire in output.get(INPUT, ()):
            self._take(decode_outcome(wire), node)

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> Iterator[None]:
        """Record that a worker died over an execution; whoever runs next may try it again."""
        entry = self.log.get(execution.key) if (execution := self._execution(crashitem)) is not None else None
        if entry is None:
            return (yield)
        execution, name = entry.execution, report.node.gateway.id
        report.when = "setup"  # what pytest shows as E, and JUnit as an error
        report.location = (report.location[0], None, f"{execution.case.safe_id} {execution.name}")
        if entry.outcome is not None and entry.outcome.failure_class != WorkerLost.failure_class:
            gist = f"{execution.label}: {name} died when the outcome had been recorded"
            report.longrepr = TrialRepr(gist, [gist])
            sched.mark_test_pending = lambda item: None  # would have it paid for again
            try:
                return (yield)
            finally:
                del sched.mark_test_pending
        began = self._begun.pop(crashitem, None)
        how = "before it began it" if began is None else "while running it; what it cost is not known"
        error = WorkerLost(f"{execution.label}: {name} died {how}")
        latency = 0.0 if began is None else monotonic() - began
        charged = 0.0 if began is None else self.evals.campaign.worst_case(execution) or 0.0
        outcome = failed_without_trial(execution, error, latency_s=latency, charged=charged)
        row = outcome.row or {}
        case, rows = self.evals.campaign.shown(execution.case), f"{self._shown()}/{ERRORS}"
        report.longrepr = TrialRepr(headline(row), unmeasured(case, row, (), rows))
        self._take(outcome, report.node)
        return (yield)

    def _take(self, outcome: Outcome, node: Any = None) -> None:
        entry = self.log.get(outcome.key)
        if not self.opened or entry is None:
            return
        if entry.outcome is not None and entry.outcome.failure_class != WorkerLost.failure_class:
            return
        with self.evals.interrupts.held():
            entry.outcome = outcome
            self.evals.writer.put(outcome)
            self.evals.writer.wait_for_room()
        if self._shares is not None and node is not None:
            self._account(self._shares, outcome, node, self.evals.campaign.worst_case(entry.execution) or 0.0)
        if outcome.kind is Kind.EXIT:
            self._exit = outcome
            self._stop(outcome.reason)
        self._stop(outcome.stop_reason or self._canary.judge(outcome))

    def _account(self, shares: Shares, outcome: Outcome, node: Any, worst_case: float) -> None:
        """Charge a worker's share; one that cannot pay for more gets no more, as long as another one can."""
        shares.charge(node.gateway.id, outcome.charged)
        beyond_all = worst_case > shares.whole  # which says nothing of this worker
        if outcome.withheld and not beyond_all and shares.used_up(node.gateway.id) and not node.shutting_down:
            node.shutdown()

    def _execution(self, nodeid: str) -> Execution | None:
        names = _NAMES.search(nodeid)
        return self._by_name.get((names[1], names[2])) if names else None

    def _shown(self) -> str:
        """Return the path of the variant as seen from where the session was started."""
        return one_line(os.path.relpath(self.evals.variant_path, self._config.invocation_params.dir))

    # --- the session --------------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Iterator[None]:
        """After an interrupt, still take what workers have sent, or send within a short grace."""
        try:
            return (yield)
        except BaseException as error:
            self._interrupted = type(error) is KeyboardInterrupt  # xdist stops by an exception derived of it
            if self.opened:
                self._take_queued()
            raise

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Close the account."""
        self._pause.close()
        if not self.opened:
            self.evals.close()
            return
        in_flight = {execution.key for nodeid in self._begun if (execution := self._execution(nodeid)) is not None}
        self.abandoned = sum(entry.execution.key in in_flight for entry in self.log.untried)
        with suppress(KeyboardInterrupt), self.evals.interrupts.held():  # the session ends anyway
            self.evals.close()
        if self._interrupted:
            return
        if self._exit is not None:
            code = self._exit.returncode
            session.exitstatus = pytest.ExitCode.INTERRUPTED if code is None else code
        elif session.exitstatus in _STOPPED and (
            self.evals.failed or self.stop_reason or self.evals.tally.withheld or self.evals.inconclusive
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _stop(self, reason: str | None) -> None:
        """Stop the session if there is a reason: workers get nothing more to run."""
        if self.stop_reason is None and reason is not None:
            self.stop_reason = reason
            session: Any = self._config.pluginmanager.get_plugin("dsession")
            if session is not None:
                session.shouldstop = f"hillclimb: {one_line(reason, 200)}"

    def _take_queued(self) -> None:
        """Take what comes from workers until none has anything in flight; they are given nothing more to run."""
        session: Any = self._config.pluginmanager.get_plugin("dsession")
        up = len(session.sched.nodes) if session is not None and session.sched is not None else 0
        deadline = monotonic() + _GRACE_S
        while up and (self._begun or not session.queue.empty()):
            try:
                name, event = session.queue.get(timeout=max(0.0, deadline - monotonic()))
            except Empty:
                return
            if name == "testreport":
                event["rep"].node = event["node"]  # as pytest-xdist does when it takes a report itself
                self.pytest_runtest_logreport(event["rep"])
            elif name == "logstart":
                self.pytest_runtest_logstart(event["nodeid"])
            elif name == "logfinish":
                self.pytest_runtest_logfinish(event["nodeid"])
            elif name == "workerfinished":
                self.pytest_testnodedown(event["node"], None)
            up -= name in ("workerfinished", "errordown")

    def _tell_progress(self) -> None:
        left = self._pause.left()
        if left >= _NOTICED_PAUSE_S and monotonic() + left > self._paused_until + 1.0:
            self._paused_until = monotonic() + left
            line = f"hillclimb: a server asks to wait {left:.0f} s more; nothing new is started until then"
            print_line(self._config, line)
        if self.opened and monotonic() - self._told_at >= _PROGRESS_EVERY_S:
            self._told_at = monotonic()
            print_line(self._config, self.evals.progress_line())


def _deselects(config: pytest.Config) -> bool:
    return any(config.getoption(name, None) for name in ("keyword", "markexpr", "deselect"))
