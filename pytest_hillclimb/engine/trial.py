"""One trial: run, identity check, reference, grade, under one deadline, with exactly one outcome.

A trial is carried out by a lane (a daemon thread). Its end may also come from the supervisor, when the deadline passes:
whoever ends it first wins, and what comes later is fenced off.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from inspect import isawaitable
from time import monotonic

from pytest_hillclimb.engine.account import APP, JUDGE, Account
from pytest_hillclimb.engine.app import App
from pytest_hillclimb.engine.attempts import Attempts
from pytest_hillclimb.engine.chain import error_text
from pytest_hillclimb.engine.concluding import Conclusion
from pytest_hillclimb.engine.ends import Fenced, Interrupted, Substituted, TrialTimeout
from pytest_hillclimb.engine.limits import Limits
from pytest_hillclimb.engine.loop import AsyncCall
from pytest_hillclimb.engine.outcome import Outcome
from pytest_hillclimb.engine.output import CURRENT, Output
from pytest_hillclimb.engine.retry import RetryPolicy
from pytest_hillclimb.engine.served import is_served
from pytest_hillclimb.engine.services import Services
from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.grade import Graded, read_grade
from pytest_hillclimb.model.run import Run, read_run
from pytest_hillclimb.schedule.plan import Execution

_LONGEST_PAUSE_S = 3600.0  # that one answer of a server may hold up a run


class Trial:
    """An execution being carried out.

    :param position: its place in the session, in which trials are started
    :param reserved: USD that it may cost, which a campaign's ledger sets aside before it starts; None without one
    """

    def __init__(
        self, execution: Execution, app: App, services: Services, position: int, reserved: float | None = None
    ) -> None:
        self.execution = execution
        self.position = position
        self.reserved = reserved
        self.outcome: Outcome | None = None
        self.ended = False
        self.queued = False
        self.taken = False
        self.withheld: str | None = None
        """Why the campaign's ledger does not let it start."""
        self.deadline = math.inf
        self.waiting: AsyncCall | None = None
        self._app = app
        self._services = services
        self._lock = threading.Lock()
        self._limits = Limits.of(execution, app.settings)
        self._attempts = Attempts(execution, app, lambda: self.deadline)
        self._account = Account(execution, self._attempts.billed, app.redactor.text)
        self._conclusion = Conclusion(execution, app, self._limits, self._account, self._attempts, reserved)
        self._stage = APP
        self._latency = 0.0
        self._retries: RetryPolicy | None = None
        self._output = Output()

    def carry_out(self) -> None:
        """Carry the trial out and end it; never raises. Runs in a context of its own."""
        CURRENT.set(self._output)
        self._conclusion.begin()
        if self.withheld is not None:
            self._end(self._conclusion.not_run(self.withheld))
            return
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
            self._end(self._conclusion.unmeasured(error, self._stage))
        except BaseException as worse:  # whatever a foreign exception does when it is looked at, the trial must end
            plainer = RuntimeError(f"{type(error).__name__}, and reading it: {error_text(worse)}")
            self._end(self._conclusion.unmeasured(plainer, self._stage))

    def clean_up(self) -> None:
        """Remove what the trial's attempts left in temporary directories."""
        self._attempts.clean_up()

    def expire(self) -> bool:
        """End the trial because its deadline has passed; return False if it had ended."""
        text = f"{self.execution.label}: exceeded {self._limits.ceiling} in the {self._stage} stage"
        return self._end(self._conclusion.unmeasured(TrialTimeout(text), self._stage))

    def interrupt(self) -> bool:
        """End the trial with the session, without outcome unless something was billed; return False if it had ended."""
        reason = self._retries.failed_try if self._retries is not None else None
        if reason is None and self._account.paid:
            reason = Interrupted("the session ended before the trial")
        return self._end(self._conclusion.unmeasured(reason, self._stage) if reason is not None else None)

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
        requested = self._limits.model
        if not is_served(requested, run.model):
            raise Substituted(f"served model {run.model} != requested {requested}")
        self._stage = "reference"
        reference = None if self._app.settings.is_baseline else self._app.reference(self.execution.prompt_id)
        self._stage = JUDGE
        graded = self._policy().call(lambda: self._grade_once(run, reference))
        return self._conclusion.scored(run, graded, self._latency)

    def _run_once(self) -> Run:
        def call() -> object:
            return self._app.run_case(self.execution.case, self._attempts.begin(APP))

        self._checkpoint()
        value = self._await(call(), call)
        self._latency = monotonic() - self._attempts.began
        try:
            run = self._attempts.complete(read_run(value))
        except BadValueError:
            self._account.salvage(value, APP)
            raise
        self._account.completed(run)
        return run

    def _grade_once(self, run: Run, reference: str | None) -> Graded:
        def call() -> object:
            return self._app.grade_case(self.execution.case, run, reference, self._attempts.begin(JUDGE))

        self._checkpoint()
        value = call()
        if self._app.grade_is_async:
            value = self._await(value, call)
        elif isawaitable(value):
            getattr(value, "close", lambda: None)()
            raise BadValueError.at("grade", "a plain def returned a coroutine; write it as 'async def', or await it")
        try:
            graded = read_grade(value)
        except BadValueError:
            self._account.salvage(value, JUDGE)
            raise
        return replace(graded, judge={**self._attempts.billed(JUDGE), **graded.judge})

    def _await(self, value: object, again: Callable[[], object]) -> object:
        """Return *value*, awaited if it is awaitable; a call that is lost with its loop is made again, once."""
        if not isawaitable(value):
            return value
        call = self._settled(AsyncCall(value, self.execution.label, self._extend), alone=False)
        if call.lost and self._services.stopping():
            raise Interrupted(f"{self.execution.label}: its event loop was blocked by other code as the session ended")
        if call.lost:
            self._account.lost(self._stage)
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
            on_asked=self._asked_to_wait,
            on_late=self._too_late,
            affords=self._affords_another_try,
            tries=self._limits.tries,
        )
        return self._retries

    def _too_late(self) -> None:
        self._account.not_retried = "another try would pass the deadline"

    def _affords_another_try(self, error: BaseException) -> bool:
        """Set aside what another try of the app may cost; those of judges come on top of what was reserved."""
        needed = self._conclusion.with_another_try(error) if self._stage == APP else None
        if needed is None or self._services.affords(self, *needed):
            return True
        self._account.not_retried = "cost ceiling"
        return False

    def _asked_to_wait(self, seconds: float) -> None:
        self._services.pause(min(seconds, _LONGEST_PAUSE_S), self.execution.label)

    def _extend(self, seconds: float) -> None:
        self.deadline += seconds

    def _renew_deadline(self) -> None:
        if self._limits.timeout > 0:
            self.deadline = monotonic() + self._limits.timeout
            self._services.watch(self)

    def _end(self, outcome: Outcome | None) -> bool:
        with self._lock:
            if self.ended:
                return False
            if outcome is not None:
                outcome.said = self._app.redactor.data(self._output.take())
            self.outcome, self.ended = outcome, True
        self._services.ended(self)
        return True
