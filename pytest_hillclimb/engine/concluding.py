"""Concluding a trial: from what was measured, or from what kept it from being measured, to its one outcome."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic, time
from typing import Any

from pytest_hillclimb.engine.account import APP, JUDGE, Account
from pytest_hillclimb.engine.app import App
from pytest_hillclimb.engine.attempts import Attempts
from pytest_hillclimb.engine.chain import error_place, error_text
from pytest_hillclimb.engine.classify import Failure, classify
from pytest_hillclimb.engine.ends import Fenced
from pytest_hillclimb.engine.limits import Judgement, Limits, judge
from pytest_hillclimb.engine.outcome import Kind, Outcome, Signal
from pytest_hillclimb.engine.served import requested_name
from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.grade import Graded
from pytest_hillclimb.model.prices import RowCost
from pytest_hillclimb.model.rows import Row
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.model.settings import PROBES
from pytest_hillclimb.schedule.plan import Execution

_NAMING = frozenset({"prompt_id", "original_id", "case_id", "candidate_id", "slot_id", "execution_id"})
"""Keys whose values name an execution: a row whose name was blotted out could not be found again."""


class Conclusion:
    """Makes the outcome of one trial, with everything in it redacted; its output strictly, as ``Redactor.strict`` does.

    :param reserved: USD that a campaign's ledger has set aside for the trial, None without a ceiling
    """

    def __init__(
        self,
        execution: Execution,
        app: App,
        limits: Limits,
        account: Account,
        attempts: Attempts,
        reserved: float | None,
    ) -> None:
        self._started = self._started_wall = 0.0
        self._execution = execution
        self._app = app
        self._limits = limits
        self._account = account
        self._attempts = attempts
        self._reserved = reserved

    def begin(self) -> None:
        """Note that the trial has been started."""
        self._started, self._started_wall = monotonic(), time()

    def scored(self, run: Run, graded: Graded, latency: float) -> Outcome:
        """Return the outcome of a trial that was graded; *latency* is in seconds."""
        perf, flaw = self._perf(run)
        candidate = self._execution.candidate
        judged = Judgement([], {})
        if candidate is not None:
            judged = judge(candidate.budget, run, self._app.prices, candidate.model)
        over = judged.exceeded
        if over:
            graded = replace(graded, passed=False)
        row = self._account.results_row(run, graded, latency_s=latency, perf=perf, over_budget=over)
        notes = {"perf_error": flaw, "budget_unjudged": list(judged.unjudged)}
        if any(notes.values()):
            row["meta"] = {**row.get("meta", {}), **{name: note for name, note in notes.items() if note}}
        return self._outcome(
            Kind.SCORED,
            row,
            passed=graded.passed,
            transcript=run.transcript,
            has_trace=run.transcript is not None,
            output=run.output,
            attachments=self._attempts.artifacts(),
        )

    def unmeasured(self, error: BaseException, stage: str) -> Outcome:
        """Return the outcome of a trial that *error* ended in *stage*."""
        signal = self._app.signal(error)
        if signal is not None:
            return self._signalled(error, signal, stage)
        failure = _failure(error, stage)
        return self._outcome(
            Kind.FAILED,
            self._errors_row(error, failure, stage),
            attachments=self._attempts.artifacts(),
            place=error_place(error),
            # A check of the grader has no key, and others may be graded without one.
            stops_run=failure.stops_run and self._app.settings.lane not in PROBES,
        )

    def not_run(self, reason: str) -> Outcome:
        """Return the outcome of a trial that was never started."""
        return self._outcome(Kind.SKIPPED, None, reason=reason, duration=0.0, withheld=True)

    def with_another_try(self, error: BaseException) -> tuple[float, float] | None:
        """Return the USD that the trial has spent when *error* came, and may have with another try of the app.

        None without a ceiling.
        """
        if self._reserved is None:
            return None
        row, unknown = self._account.spent(error)
        spent = self._spent(row, unknown, self._reserved)
        return spent, spent + self._reserved

    def _cost(self, row: Row) -> RowCost:
        model = self._limits.model
        return self._app.prices.row_cost(row, model, requested_name(model))

    def _perf(self, run: Run) -> tuple[dict[str, Any], str | None]:
        """Return the user's extra numbers, or what kept them away: a paid grade is not lost to them."""
        try:
            return self._app.perf_numbers(self._execution.case, run), None
        except Fenced:
            raise
        except BaseException as error:
            return {}, error_text(error)

    def _signalled(self, error: BaseException, signal: Signal, stage: str) -> Outcome:
        row = self._errors_row(error, Failure("error"), stage) if self._account.paid else None
        return self._outcome(signal.kind, row, reason=signal.reason, returncode=signal.returncode)

    def _errors_row(self, error: BaseException, failure: Failure, stage: str) -> Row:
        return self._account.errors_row(error, failure, stage, latency_s=monotonic() - self._started)

    def _outcome(self, kind: Kind, row: Row | None, **more: Any) -> Outcome:
        clean = self._app.redactor.data
        # An output may become a reference, which is compared with outputs: no word of it may be lost without need.
        output = self._app.redactor.strict.data(more.pop("output", None))
        more = {name: value if name == "attachments" else clean(value) for name, value in more.items()}
        return Outcome(
            key=self._execution.key,
            label=self._execution.label,
            file_stem=self._execution.file_stem,
            kind=kind,
            row=clean(row, keep=_NAMING),
            started=self._started_wall,
            charged=self._charged(row, kind),
            judged=self._judged(row),
            **{"duration": monotonic() - self._started, "output": output, **more},
        )

    def _charged(self, row: Row | None, kind: Kind) -> float:
        """Return the USD that a campaign is charged.

        What was reserved stands for each try of the app whose spend nobody knows, on top of what is known. Where it is
        a judge that nobody knows the spend of, it is the least.
        """
        if self._reserved is None:
            return 0.0
        unknown = self._account.unknown
        if row is None:
            return self._reserved * max(unknown[APP], kind is not Kind.SKIPPED)
        unmetered = kind is Kind.SCORED and row.get("usage") is None
        spent = self._spent(row, unknown[APP] + unmetered, self._reserved)
        return max(spent, self._reserved) if unknown[JUDGE] else spent

    def _judged(self, row: Row | None) -> float:
        """Return what is known of the judge's cost, 0 without a campaign ceiling."""
        if self._reserved is None or row is None:
            return 0.0
        return self._cost(row).judge or 0.0

    def _spent(self, row: Row, unknown: int, reserved: float) -> float:
        """Return what a row has cost, with the stated rate for usage without a price, and *reserved* for the unknown.

        :param unknown: how many tries do not say what they have cost
        """
        cost = self._cost(row)
        rate = self._app.settings.trial_cost
        return (cost.total or 0.0) + cost.unpriced * (reserved if rate is None else rate) + unknown * reserved


def failed_without_trial(
    execution: Execution, error: BaseException, *, latency_s: float = 0.0, charged: float = 0.0
) -> Outcome:
    """Return the outcome of an execution that *error* kept from becoming, or ending as, a trial of this process.

    :param charged: USD that a campaign is charged with, 0 without a ceiling
    """
    row = Account(execution).errors_row(error, classify(error), APP, latency_s=latency_s)
    return Outcome(
        key=execution.key,
        label=execution.label,
        file_stem=execution.file_stem,
        kind=Kind.FAILED,
        row=row,
        charged=charged,
    )


def _failure(error: BaseException, stage: str) -> Failure:
    if stage == APP:
        return classify(error, "invalid_output" if isinstance(error, BadValueError) else "error")
    return classify(error, "grader_error" if stage == JUDGE else "error")
