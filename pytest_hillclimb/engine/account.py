"""The account of one trial: what it is known to have spent, how often it was retried, and the rows made of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_hillclimb.engine.chain import error_text
from pytest_hillclimb.engine.classify import Failure
from pytest_hillclimb.engine.ends import EngineEnd
from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.grade import Graded
from pytest_hillclimb.model.rows import Row, errors_row, given, results_row
from pytest_hillclimb.model.run import Run, billed
from pytest_hillclimb.schedule.plan import Execution

APP, JUDGE = "app", "judge"
_BILLED = ("model", "usage", "judge_model", "judge_usage")


class Account:
    """Keeps what a trial has spent so far, whoever ends it."""

    def __init__(self, execution: Execution) -> None:
        self.retries = {APP: 0, JUDGE: 0}
        self._execution = execution
        self._billed: dict[str, Any] = {}
        self._retry_usage: list[dict[str, Any]] = []

    @property
    def paid(self) -> bool:
        """Whether anything is known to have been billed."""
        return bool(self._billed or self._retry_usage)

    def completed(self, run: Run) -> None:
        """Note that the app call has completed."""
        self._billed = given(run, *_BILLED)

    def salvage(self, value: object, stage: str) -> None:
        """Note what an unusable result says of its cost."""
        self._billed.update(_of_stage(billed(value), stage))

    def retried(self, error: BaseException, stage: str) -> None:
        """Note that a try has failed and, after its wait, is made again."""
        self.retries[stage] += 1
        known = billed(error)
        if stage == APP and (usage := known.get("usage")):
            self._retry_usage.append({**usage, **_given(known, "model")})
        elif usage := known.get("judge_usage"):
            self._retry_usage.append({**usage, "judge_model": known.get("judge_model")})

    def results_row(self, run: Run, graded: Graded, *, latency_s: float, perf: Mapping[str, Any]) -> Row:
        """Return the row of the scored execution."""
        case = self._execution.case
        meta: dict[str, Any] = {"original_id": case.id} if case.safe_id != case.id else {}
        meta |= {name: count for name, count in self._retry_counts().items() if count}
        if self._retry_usage:
            meta["retry_usage"] = list(self._retry_usage)
        return results_row(case, self._execution.rep, run, graded, latency_s=round(latency_s, 3), perf=perf, meta=meta)

    def errors_row(self, error: BaseException, failure: Failure, stage: str, *, latency_s: float) -> Row:
        """Return the row of the execution that *error* kept from being scored."""
        more: dict[str, Any] = {}
        if not isinstance(error, (EngineEnd, BadValueError)):
            more["error_type"] = type(error).__name__
        if failure.code is not None:
            more["code"] = failure.code
        if self._retry_usage:
            more["retry_usage"] = list(self._retry_usage)
        return errors_row(
            self._execution.case,
            self._execution.rep,
            failure_class=failure.failure_class,
            error=error_text(error),
            **self._retry_counts(),
            billed={**self._billed, **_of_stage(billed(error), stage)},
            latency_s=round(latency_s, 3),
            more=more,
        )

    def _retry_counts(self) -> dict[str, int]:
        return {"retries": self.retries[APP], "judge_retries": self.retries[JUDGE]}


def _of_stage(known: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """Return what an exception or result of a stage may tell: a grader knows only what the judge was billed."""
    return {key: value for key, value in known.items() if stage == APP or key.startswith("judge_")}


def _given(known: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: known[name]} if name in known else {}
