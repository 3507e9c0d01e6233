"""A worker of pytest-xdist: carries out one trial at a time and sends its outcome home on the item's report.

It reads no catalog and no flow directory. All that its session depends on comes from the controller, so that every
worker collects the same items, whatever its directory or machine.
"""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.catalog import entries_from
from pytest_hillclimb.catalog.fields import case_of
from pytest_hillclimb.engine.concluding import failed_without_trial
from pytest_hillclimb.engine.engine import Engine
from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.engine.trial import Trial
from pytest_hillclimb.errors import HillclimbError, InfrastructureError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.report.terminal import one_line
from pytest_hillclimb.schedule.plan import Execution
from pytest_hillclimb.wiring.campaign import NOT_QUALIFIED, Campaign
from pytest_hillclimb.wiring.cases import arrange
from pytest_hillclimb.wiring.collect import LOADED, RUN_ITEM, Collection, TrialItem
from pytest_hillclimb.wiring.hooks import load_cases
from pytest_hillclimb.wiring.output import OutputRouting
from pytest_hillclimb.wiring.pauses import SharedPause
from pytest_hillclimb.wiring.presenting import Presenter, Reporting
from pytest_hillclimb.wiring.trials import TrialMaker
from pytest_hillclimb.wiring.wire import VARIANT_PATH, WorkerPlan, case_fields, decode_plan, encode_outcome

INPUT = "hillclimb"
"""Key of the plan in ``workerinput``, and of outcomes without a report in ``workeroutput``."""

SHARE = "hillclimb_share"
"""Key of this worker's share of the cost ceiling, in USD, in ``workerinput``."""

PAUSE = "hillclimb_pause"
"""Key of the path of the file that tells of a server's pause, in ``workerinput``."""

_GRACE_S = 3.0
_LOOK_EVERY_S = 0.5


class WorkerSession:
    """Runs the executions that the controller hands to this worker."""

    def __init__(self, config: pytest.Config, text: str) -> None:
        self._config = config
        self._plan = decode_plan(text)
        self._earlier = {outcome.key: outcome for outcome in self._plan.earlier}
        self._ended = threading.Condition()
        self._awaited: Trial | None = None
        self._late: list[Outcome] = []
        self._stop_reason: str | None = None
        self._campaign = _campaign(self._plan)
        self._routing = OutputRouting(config, self._campaign.redactor.text)
        ledger = self._campaign.ledger(config.workerinput.get(SHARE))  # type: ignore[attr-defined]
        self._pause = SharedPause(config.workerinput[PAUSE])  # type: ignore[attr-defined]
        self._engine = Engine(1, on_end=self._on_end, warn=lambda _: None, on_pause=self._pause.tell, ledger=ledger)
        self._maker = TrialMaker(self._campaign, self._plan.state, self._reference)
        self._presenter = Presenter(config, self._campaign, config.invocation_params.dir / VARIANT_PATH)
        # What pytest-xdist talks to the controller with is a plugin without a name.
        self._home: Any = next(p for p in config.pluginmanager.get_plugins() if hasattr(p, "sendevent"))
        self._of_hooks: dict[str, Case] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Take over the controller's cases and paths."""
        config, given = self._config, self._plan
        for entry in given.python_path:
            if entry not in sys.path and os.path.isdir(entry):
                sys.path.insert(0, entry)
        arguments = [_here(config, given, path) for path in given.arguments]
        if all(Path(argument.split("::", 1)[0]).exists() for argument in arguments):
            config.args[:] = arguments
        files = [(_path_here(config, given, path), entries) for path, entries in given.files]
        config.stash[LOADED] = loaded = arrange(files, given.settings, given.manifest)
        config.stash[RUN_ITEM] = self.run
        names = {_path_here(config, given, path): path for path, _ in given.files}
        for part in (Collection(given.settings, loaded, names), Reporting(self._campaign.redactor, sends_home=True)):
            config.pluginmanager.register(part)
        self._routing.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Give what is in flight a short grace to end; what comes of it goes home with the session's result."""
        self._engine.stop()
        hurried = self._is_orphaned()
        try:
            self._engine.wait_idle(0.0 if hurried else _GRACE_S)
        except KeyboardInterrupt:
            hurried = True
        self._engine.close(hurried=hurried)
        self._routing.stop()
        output: dict[str, Any] = self._config.workeroutput  # type: ignore[attr-defined]
        output[INPUT] = [encode_outcome(outcome) for outcome in self._late]

    def run(self, item: TrialItem) -> None:
        """Run the trial of an item and report what it ended as."""
        if item.outcome is None:
            item.outcome = self._earlier.get(item.execution.key)
        if item.outcome is None:
            self._routing.adopt()
            item.outcome = self._carry_out(item)
            item.wire = encode_outcome(item.outcome)
            item.outcome.transcript, item.outcome.attachments = None, {}
        if item.outcome.kind is Kind.EXIT:
            # Raised here, it would end this worker alone, and pytest-xdist take that for a crash.
            self._stop_reason = self._stop_reason or item.outcome.reason
            pytest.skip(f"the session was ended: {one_line(item.outcome.reason)}")
        self._presenter.present(item, item.outcome)

    def _carry_out(self, item: TrialItem) -> Outcome:
        if self._stop_reason is None and self._is_orphaned():
            self._stop_reason = "the controller is gone"
        if self._stop_reason is not None:
            pytest.skip(f"not run: {one_line(self._stop_reason)}")
        if (refusal := self._campaign.refusal(item.execution.candidate)) is not None:
            if not self._plan.settings.require_qualified:
                pytest.skip(refusal)
            # Its controller, which has looked before the session, may have another environment.
            return failed_without_trial(item.execution, InfrastructureError(NOT_QUALIFIED, False, refusal))
        item.execution = self._whole(item.execution)
        trial = item.trial = item.trial or self._maker.make(item, self._engine)
        self._awaited = trial
        if left := self._pause.left():
            self._engine.pause(left, "another worker")
        self._engine.need(trial)
        return self._wait(trial)

    def _wait(self, trial: Trial) -> Outcome:
        with self._ended:
            try:
                while not self._ended.wait_for(lambda: trial.outcome is not None, _LOOK_EVERY_S):
                    if self._is_orphaned():
                        pytest.exit("the controller is gone")
            except BaseException:
                self._awaited = None
                if trial.outcome is not None:
                    self._late.append(trial.outcome)
                raise
        if trial.outcome is None:
            raise RuntimeError("a trial ended without an outcome")
        return trial.outcome

    def _whole(self, execution: Execution) -> Execution:
        """Return the execution with those fields of its case that only live in memory, asked of this worker's hook."""
        names = self._plan.in_memory.get(execution.case.id)
        if not names:
            return execution
        if self._of_hooks is None:
            found = load_cases(self._config, Path(self._plan.eval_root))
            entries = [entry for path, values in found for entry in entries_from(values, str(path))]
            self._of_hooks = {entry.case.id: entry.case for entry in entries}
        own = self._of_hooks.get(execution.case.id)
        fields = case_fields(own) if own is not None else {}
        kept = {name: fields[name] for name in names if name in fields}
        return replace(execution, case=case_of({**case_fields(execution.case), **kept}, in_memory=True))

    def _is_orphaned(self) -> bool:
        """Return whether the controller has gone: what would be paid for now, nobody could record."""
        channel = self._home.channel
        try:
            channel.waitclose(0)
        except channel.TimeoutError:
            return False
        except Exception:  # says how the connection was lost
            pass
        self._home.sendevent = lambda *_, **__: None  # would fail, and leave a traceback on the terminal
        return True

    def _on_end(self, trial: Trial) -> None:
        outcome = trial.outcome
        with self._ended:
            if outcome is not None:
                self._stop_reason = self._stop_reason or outcome.stop_reason
            if outcome is not None and trial is not self._awaited:
                self._late.append(outcome)  # its item was interrupted, so there will be no report
            self._ended.notify_all()

    def _reference(self, prompt_id: str) -> str | None:
        if prompt_id in self._plan.broken_references:
            raise HillclimbError(self._plan.broken_references[prompt_id])
        return self._plan.references.get(prompt_id)


def _campaign(plan: WorkerPlan) -> Campaign:
    return Campaign(plan.settings, plan.state, price_lines=plan.price_lines, redact=plan.redact, manifest=plan.manifest)


def _here(config: pytest.Config, given: WorkerPlan, argument: str) -> str:
    path, separator, names = argument.partition("::")
    return f"{_path_here(config, given, path)}{separator}{names}"


def _path_here(config: pytest.Config, given: WorkerPlan, path: str) -> Path:
    """Return where a path of the controller's rootdir is on this worker: in its own rootdir, else where it was."""
    own = Path(os.path.abspath(config.rootpath / path))
    return own if own.exists() else Path(os.path.abspath(Path(given.rootdir) / path))
