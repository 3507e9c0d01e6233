"""The account of one trial: what it is known to have spent, how often it was retried, and the rows made of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_hillclimb.engine.chain import cause_text, causes, error_text
from pytest_hillclimb.engine.classify import Failure, classify
from pytest_hillclimb.engine.ends import EngineEnd
from pytest_hillclimb.engine.outcome import CANDIDATE_FAILURE, COMPLETED, INFRASTRUCTURE_FAILURE
from pytest_hillclimb.errors import BadValueError, InfrastructureError
from pytest_hillclimb.model.grade import Graded
from pytest_hillclimb.model.prices import UNBILLED, UNKNOWN_TRIES
from pytest_hillclimb.model.rows import Row, errors_row, given, results_row
from pytest_hillclimb.model.run import BILLED, Run, billed
from pytest_hillclimb.schedule.plan import Execution

APP, JUDGE = "app", "judge"

_HISTORY_CHARS = 1000  # of each message in the history of failed tries


class Account:
    """Keeps what a trial has spent so far, whoever ends it.

    :param recorded: returns what was recorded of the spend of the last attempt of a stage, under the keys of a row
    :param redact: takes the secrets out of a text, before it is cut
    """

    def __init__(
        self,
        execution: Execution,
        recorded: Callable[[str], Mapping[str, Any]] = lambda stage: {},
        redact: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._recorded = recorded
        self._redact = redact
        self.retries = {APP: 0, JUDGE: 0}
        self.unknown = {APP: 0, JUDGE: 0}
        """How many tries of a stage have failed that may have been billed and do not say what."""
        self.not_retried: str | None = None
        """What kept a try that failed from being made again, where it is not the rules for retries."""
        self._execution = execution
        self._billed: dict[str, Any] = {}
        self._retry_usage: list[dict[str, Any]] = []
        self._history: list[dict[str, Any]] = []
        self._keeps_history = execution.candidate is not None

    @property
    def paid(self) -> bool:
        """Whether anything is known to have been billed."""
        return bool(self._billed or self._retry_usage)

    def completed(self, run: Run) -> None:
        """Note that the app call has completed."""
        self._billed = given(run, *BILLED)

    def salvage(self, value: object, stage: str) -> None:
        """Note what an unusable result says of its cost."""
        self._billed.update(_of_stage(billed(value), stage))

    def lost(self, stage: str) -> None:
        """Note that the last attempt of *stage* was lost with its event loop, and is made again."""
        known = self._recorded(stage)
        self._note_spend(known, stage)
        self.unknown[stage] += not known

    def retried(self, error: BaseException, stage: str) -> None:
        """Note that a try has failed and, after its wait, is made again."""
        self.retries[stage] += 1
        self._note_spend(self._known(error, stage), stage)
        self._note_failure(error, classify(error), stage)

    def _note_spend(self, known: Mapping[str, Any], stage: str) -> None:
        if stage == APP and (usage := known.get("usage")):
            self._retry_usage.append({**usage, **_given(known, "model")})
        elif usage := known.get("judge_usage"):
            self._retry_usage.append({**usage, "judge_model": known.get("judge_model")})

    def results_row(
        self, run: Run, graded: Graded, *, latency_s: float, perf: Mapping[str, Any], over_budget: list[str]
    ) -> Row:
        """Return the row of the scored execution.

        :param over_budget: the limits of the candidate's budget that it exceeded
        """
        execution = self._execution
        case = execution.case
        meta: dict[str, Any] = {"original_id": case.id} if case.safe_id != case.id else {}
        meta |= {name: count for name, count in self._retry_counts().items() if count}
        if self._retry_usage:
            meta["retry_usage"] = list(self._retry_usage)
        judged = graded.judge or any("judge_model" in usage for usage in self._retry_usage)
        if self.paid and (unknown := self.unknown[APP] + (self.unknown[JUDGE] if judged else 0)):
            meta[UNKNOWN_TRIES] = unknown
        meta |= self._attempts()
        if execution.candidate is not None:
            meta |= self._place(CANDIDATE_FAILURE if graded.passed is False else COMPLETED)
        if over_budget:
            meta["budget_exceeded"] = over_budget
        return results_row(case, execution.key, run, graded, latency_s=round(latency_s, 3), perf=perf, meta=meta)

    def errors_row(self, error: BaseException, failure: Failure, stage: str, *, latency_s: float) -> Row:
        """Return the row of the execution that *error* kept from being scored."""
        earlier = sum(self.unknown.values())
        self._note_failure(error, failure, stage)
        more: dict[str, Any] = {}
        if not isinstance(error, (EngineEnd, BadValueError)):
            more["error_type"] = type(error).__name__
        if failure.code is not None:
            more["code"] = failure.code
        if (cause := cause_text(error)) is not None:
            more["cause"] = cause
        if self._retry_usage:
            more["retry_usage"] = list(self._retry_usage)
        if unknown := self._untold_tries(earlier, failure, stage):
            more[UNKNOWN_TRIES] = unknown
        if self.not_retried is not None:
            more["not_retried"] = self.not_retried
        more |= self._attempts()
        if self._execution.candidate is not None:
            more["meta"] = self._place(INFRASTRUCTURE_FAILURE)
        return errors_row(
            self._execution.case,
            self._execution.key,
            failure_class=failure.failure_class,
            error=error_text(error),
            **self._retry_counts(),
            billed={**self._billed, **self._known(error, stage)},
            latency_s=round(latency_s, 3),
            more=more,
        )

    def spent(self, error: BaseException) -> tuple[Row, int]:
        """Return what is known to be spent after a failed try of the app, as a row has it, and of how many not."""
        tries = {"failure_class": "", "retry_usage": list(self._retry_usage)}
        unknown = self.unknown[APP] + self._is_unknown(error, classify(error), APP)
        return {**tries, **self._billed, **self._known(error, APP)}, unknown

    def _is_unknown(self, error: BaseException, failure: Failure, stage: str) -> bool:
        usage = "usage" if stage == APP else "judge_usage"
        known = usage in self._known(error, stage) or usage in self._billed
        return failure.failure_class not in UNBILLED and not known

    def _untold_tries(self, earlier: int, failure: Failure, stage: str) -> int:
        """Return how many tries of unknown cost an errors row must tell of, as nothing else in it does.

        An app that has reported no usage may be one that never costs anything.
        """
        if not self.paid and failure.failure_class not in UNBILLED:
            return 0
        may_be_free = stage == APP or failure.failure_class in ("grader_error", "infrastructure")
        return earlier if may_be_free else sum(self.unknown.values())

    def _note_failure(self, error: BaseException, failure: Failure, stage: str) -> None:
        if stage in self.unknown:
            self.unknown[stage] += self._is_unknown(error, failure, stage)
        self._keeps_history = self._keeps_history or isinstance(error, InfrastructureError)
        attempt: dict[str, Any] = {"stage": stage, "failure_class": failure.failure_class}
        if failure.code is not None:
            attempt["code"] = failure.code
        self._history.append({**attempt, "error": self._redact(error_text(error))[:_HISTORY_CHARS]})

    def _known(self, error: BaseException, stage: str) -> dict[str, Any]:
        """Return what is known of the spend of a failed try: what its exception says, else what was recorded."""
        said: dict[str, Any] = {}
        for each in causes(error):  # an app may have wrapped the exception that knows
            said = {**billed(each), **said}
        return {**self._recorded(stage), **_of_stage(said, stage)}

    def _attempts(self) -> dict[str, Any]:
        """Return the history of failed tries, kept for candidates and where the infrastructure failed."""
        return {"attempts": list(self._history)} if self._history and self._keeps_history else {}

    def _place(self, classification: str) -> dict[str, Any]:
        """Return where in the matrix the execution stands, and how it counts."""
        execution = self._execution
        candidate = execution.candidate
        return {
            "case_id": execution.case.id,
            "candidate_id": candidate.id if candidate is not None else None,
            "slot_id": candidate.slot_id if candidate is not None else None,
            "execution_id": execution.execution_id,
            "classification": classification,
        }

    def _retry_counts(self) -> dict[str, int]:
        return {"retries": self.retries[APP], "judge_retries": self.retries[JUDGE]}


def _of_stage(known: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """Return what an exception or result of a stage may tell: a grader knows only what the judge was billed."""
    return {key: value for key, value in known.items() if stage == APP or key.startswith("judge_")}


def _given(known: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: known[name]} if name in known else {}
