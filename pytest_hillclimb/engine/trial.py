"""One trial: run, identity check, reference, grade, under one deadline, with exactly one outcome.

A trial is carried out by a lane (a daemon thread). Its end may also come from the supervisor, when the deadline passes:
whoever ends it first wins, and what comes later is fenced off.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from inspect import isawaitable
from time import monotonic, time
from typing import Any

from pytest_hillclimb.engine.account import APP, JUDGE, Account
from pytest_hillclimb.engine.app import App, Context
from pytest_hillclimb.engine.chain import error_place, error_text
from pytest_hillclimb.engine.classify import Failure, classify
from pytest_hillclimb.engine.ends import Fenced, Interrupted, Substituted, TrialTimeout
from pytest_hillclimb.engine.loop import AsyncCall
from pytest_hillclimb.engine.outcome import Kind, Outcome, Signal
from pytest_hillclimb.engine.output import CURRENT, Output
from pytest_hillclimb.engine.retry import RetryPolicy
from pytest_hillclimb.engine.served import is_served
from pytest_hillclimb.engine.services import Services
from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.grade import Graded, read_grade
from pytest_hillclimb.model.rows import Row
from pytest_hillclimb.model.run import Run, read_run
from pytest_hillclimb.schedule.plan import Execution


class Trial:
    """An execution being carried out."""

    def __init__(self, execution: Execution, app: App, services: Services, position: int) -> None:
        self.execution = execution
        self.position = position
        self.outcome: Outcome | None = None
        self.ended = False
        self.queued = False
        self.taken = False
        self.deadline = math.inf
        self.started_at = 0.0
        self.waiting: AsyncCall | None = None
        self._app = app
        self._services = services
        self._lock = threading.Lock()
        self._account = Account(execution)
        self._stage = APP
        self._contexts: dict[str, list[Context]] = {APP: [], JUDGE: []}
        self._began = 0.0
        self._latency = 0.0
        self._retries: RetryPolicy | None = None
        self._started_wall = 0.0
        self._output = Output()

    def carry_out(self) -> None:
        """Carry the trial out and end it; never raises. Runs in a context of its own."""
        CURRENT.set(self._output)
        self.started_at, self._started_wall = monotonic(), time()
        self._renew_deadline()
        try:
            self._end(self._measure())
        except Fenced:
            pass
        except BaseException as error:
            self._end_unmeasured(error)
        self.clean_up()

    def _end_unmeasured(self, error: BaseException) -> None:
        try:
            self._end(self._unmeasured(error))
        except BaseException as worse:  # whatever a foreign exception does when it is looked at, the trial must end
            self._end(self._unmeasured(RuntimeError(f"{type(error).__name__}, and reading it: {error_text(worse)}")))

    def clean_up(self) -> None:
        """Remove what the trial's attempts left in temporary directories."""
        for context in (*self._contexts[APP], *self._contexts[JUDGE]):
            context.clean_up()

    def expire(self) -> bool:
        """End the trial because its deadline has passed; return False if it had ended."""
        text = f"{self.execution.label}: exceeded {self._app.settings.timeout:g}s wall-clock ceiling"
        return self._end(self._unmeasured(TrialTimeout(text)))

    def interrupt(self) -> bool:
        """End the trial with the session, without outcome unless something was billed; return False if it had ended."""
        reason = self._retries.failed_try if self._retries is not None else None
        if reason is None and self._account.paid:
            reason = Interrupted("the session ended before the trial")
        return self._end(self._unmeasured(reason) if reason is not None else None)

    @property
    def pausing(self) -> bool:
        """Whether the trial waits for another try."""
        return self._retries is not None and self._retries.waiting

    def cut_short(self) -> None:
        """End a wait for another try, and make none."""
        if self._retries is not None:
            self._retries.cut_short()

    def give_up(self) -> None:
        """Wake the lane of an ended trial out of whatever wait it is in."""
        self.cut_short()
        if (call := self.waiting) is not None:
            call.given_up = True
            call.done.set()

    def _measure(self) -> Outcome:
        run = self._policy().call(self._run_once)
        self._stage = "identity"
        requested = self._app.settings.model
        if not is_served(requested, run.model):
            raise Substituted(f"served model {run.model} != requested {requested}")
        self._stage = "reference"
        reference = None if self._app.settings.is_baseline else self._app.reference(self.execution.case.safe_id)
        self._stage = JUDGE
        graded = self._policy().call(lambda: self._grade_once(run, reference))
        return self._scored(run, graded)

    def _run_once(self) -> Run:
        def call() -> object:
            return self._app.run_case(self.execution.case, self._new_context(APP))

        self._checkpoint()
        value = self._await(call(), call)
        self._latency = monotonic() - self._began
        try:
            run = read_run(value)
        except BadValueError:
            self._account.salvage(value, APP)
            raise
        self._account.completed(run)
        return run

    def _grade_once(self, run: Run, reference: str | None) -> Graded:
        def call() -> object:
            return self._app.grade_case(self.execution.case, run, reference, self._new_context(JUDGE))

        self._checkpoint()
        value = call()
        if self._app.grade_is_async:
            value = self._await(value, call)
        elif isawaitable(value):
            getattr(value, "close", lambda: None)()
            raise BadValueError.at("grade", "a plain def returned a coroutine; write it as 'async def', or await it")
        try:
            return read_grade(value)
        except BadValueError:
            self._account.salvage(value, JUDGE)
            raise

    def _scored(self, run: Run, graded: Graded) -> Outcome:
        perf, flaw = self._perf(run)
        row = self._account.results_row(run, graded, latency_s=self._latency, perf=perf)
        if flaw:
            row["meta"] = {**row.get("meta", {}), "perf_error": flaw}
        return self._outcome(
            Kind.SCORED,
            row,
            passed=graded.passed,
            transcript=run.transcript,
            has_trace=run.transcript is not None,
            output=run.output,
            attachments=self._artifacts(),
        )

    def _perf(self, run: Run) -> tuple[dict[str, Any], str | None]:
        """Return the user's extra numbers, or what kept them away: a paid grade is not lost to them."""
        try:
            return self._app.perf_numbers(self.execution.case, run), None
        except Fenced:
            raise
        except BaseException as error:
            return {}, error_text(error)

    def _unmeasured(self, error: BaseException) -> Outcome:
        signal = self._app.signal(error)
        if signal is not None:
            return self._signalled(error, signal)
        failure = self._failure(error)
        return self._outcome(
            Kind.FAILED,
            self._errors_row(error, failure),
            attachments=self._artifacts(),
            place=error_place(error),
            stops_run=failure.stops_run,
        )

    def _signalled(self, error: BaseException, signal: Signal) -> Outcome:
        row = self._errors_row(error, Failure("error")) if self._account.paid else None
        return self._outcome(signal.kind, row, reason=signal.reason, returncode=signal.returncode)

    def _failure(self, error: BaseException) -> Failure:
        if self._stage == APP:
            return classify(error, "invalid_output" if isinstance(error, BadValueError) else "error")
        return classify(error, "grader_error" if self._stage == JUDGE else "error")

    def _errors_row(self, error: BaseException, failure: Failure) -> Row:
        return self._account.errors_row(error, failure, self._stage, latency_s=monotonic() - self.started_at)

    def _artifacts(self) -> dict[str, bytes]:
        """Return what the last attempt of each stage attached."""
        last = [contexts[-1].artifacts() for contexts in self._contexts.values() if contexts]
        return {name: content for artifacts in last for name, content in artifacts.items()}

    def _outcome(self, kind: Kind, row: Row | None, **more: Any) -> Outcome:
        return Outcome(
            key=self.execution.key,
            label=self.execution.label,
            file_stem=self.execution.file_stem,
            kind=kind,
            row=row,
            started=self._started_wall,
            duration=monotonic() - self.started_at,
            **more,
        )

    def _await(self, value: object, again: Callable[[], object]) -> object:
        """Return *value*, awaited if it is awaitable; a call that is lost with its loop is made again, once."""
        if not isawaitable(value):
            return value
        call = self._settled(AsyncCall(value, self.execution.label, self._extend), alone=False)
        if call.lost and self._services.stopping():
            raise Interrupted(f"{self.execution.label}: its event loop was blocked by other code as the session ended")
        if call.lost:
            self._renew_deadline()
            value = again()
            if not isawaitable(value):
                return value
            call = self._settled(AsyncCall(value, self.execution.label, self._extend), alone=True)
        if call.lost:
            raise TrialTimeout(f"{self.execution.label}: its event loop was blocked twice by other code")
        if call.error is not None:
            raise call.error
        return call.value

    def _settled(self, call: AsyncCall, *, alone: bool) -> AsyncCall:
        with self._lock:
            self.waiting = call
        if self.ended:
            call.discard()
            raise Fenced
        self._services.start_call(call, alone=alone)
        call.done.wait()
        self.waiting = None
        if self.ended:
            raise Fenced
        return call

    def _checkpoint(self) -> None:
        if self.ended:
            raise Fenced
        if monotonic() >= self.deadline:
            raise TrialTimeout(f"{self.execution.label}: wall-clock ceiling exceeded before attempt")

    def _policy(self) -> RetryPolicy:
        self._retries = RetryPolicy(
            deadline=lambda: self.deadline,
            stopping=self._services.stopping,
            on_retry=lambda error: self._account.retried(error, self._stage),
        )
        return self._retries

    def _new_context(self, stage: str) -> Context:
        context = Context(
            execution=self.execution,
            settings=self._app.settings,
            state=self._app.state,
            attempt=len(self._contexts[stage]) + 1,
            deadline=lambda: self.deadline,
            attached_before=0 if stage == APP else sum(map(len, self._artifacts().values())),
        )
        self._contexts[stage].append(context)
        self._began = monotonic()
        return context

    def _extend(self, seconds: float) -> None:
        self.deadline += seconds

    def _renew_deadline(self) -> None:
        if self._app.settings.timeout > 0:
            self.deadline = monotonic() + self._app.settings.timeout
            self._services.watch(self)

    def _end(self, outcome: Outcome | None) -> bool:
        with self._lock:
            if self.ended:
                return False
            if outcome is not None:
                outcome.said = self._output.take()
            self.outcome, self.ended = outcome, True
        self._services.ended(self)
        return True
