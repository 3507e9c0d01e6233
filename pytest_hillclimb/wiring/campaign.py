"""What all executions of a session share: prices, redaction, the candidates' qualification, and the cost ceiling."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pytest

from pytest_hillclimb.engine.ledger import Ledger
from pytest_hillclimb.engine.limits import judge
from pytest_hillclimb.engine.served import requested_name
from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.model.candidate import Candidate, Manifest
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.credentials import missing
from pytest_hillclimb.model.prices import PriceTable, RowCost
from pytest_hillclimb.model.redaction import Redactor
from pytest_hillclimb.model.rows import Row
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.model.settings import PROBES, Settings
from pytest_hillclimb.report.terminal import plural
from pytest_hillclimb.schedule.plan import Execution
from pytest_hillclimb.schedule.worst_case import WorstCase, worst_case, worst_case_total

NOT_QUALIFIED = "qualification_environment_missing"
"""The code of a failure that is due to a candidate's environment."""

_LISTED = 8


class Campaign:
    """The resolved parts of a session that its trials are made with.

    :param settings: the resolved options
    :param state: the loop state, whose ``prices`` add to the price table
    :param price_lines: the ini lines that add to it, and win
    :param redact: the ini's further patterns of secrets
    :param manifest: the candidates, None for the one unnamed candidate
    :raises RefusedError: for prices or patterns that cannot be used
    """

    def __init__(
        self,
        settings: Settings,
        state: Mapping[str, Any],
        *,
        price_lines: Sequence[str] = (),
        redact: Sequence[str] = (),
        manifest: Manifest | None = None,
    ) -> None:
        self.settings = settings
        self.manifest = manifest
        self.price_lines = tuple(price_lines)
        self.redact = tuple(redact)
        self.redactor = Redactor(redact, os.environ, "hillclimb_redact")
        from_state = PriceTable.built_in().with_prices(state.get("prices"), "_state.json: prices")
        self.prices = from_state.with_lines(price_lines, "hillclimb_prices")
        self._refusals: dict[str, str | None] = {}

    @classmethod
    def of(
        cls, config: pytest.Config, settings: Settings, state: Mapping[str, Any], manifest: Manifest | None
    ) -> Campaign:
        """Return the campaign of a session with this configuration; errors as for the class."""
        lines, patterns = config.getini("hillclimb_prices"), config.getini("hillclimb_redact")
        return cls(settings, state, price_lines=lines, redact=patterns, manifest=manifest)

    @cached_property
    def models(self) -> dict[str, str]:
        """The model of each candidate by its id."""
        return {c.id: c.model for c in self.manifest.candidates} if self.manifest is not None else {}

    @property
    def ceiling(self) -> float | None:
        """The cost ceiling in USD, None for none: a check of the grader has none, as it calls no app."""
        return None if self.settings.lane in PROBES else self.settings.max_cost

    def refusal(self, candidate: Candidate | None) -> str | None:
        """Return why a candidate is not qualified here, None when it is: names of variables, never values."""
        if candidate is None or self.settings.lane in PROBES:
            return None
        if candidate.id not in self._refusals:
            names = ", ".join(missing(candidate.qualification.required_env, os.environ))
            reason = f"not qualified: {candidate.id} needs {names} in the environment" if names else None
            self._refusals[candidate.id] = reason
        return self._refusals[candidate.id]

    def shown(self, case: Case) -> Case:
        """Return a case as it may be shown, without the secrets in its prompt and its expected answer."""
        clean = self.redactor.data
        return case.model_copy(update={"prompt": clean(case.stored_prompt), "expected": clean(case.expected)})

    def row_cost(self, row: Row) -> RowCost:
        """Return what a row of this run has cost."""
        meta = row.get("meta")
        candidate = meta.get("candidate_id") if isinstance(meta, dict) else None
        model = self.models.get(candidate) if candidate else self.settings.model
        return self.prices.row_cost(row, model, requested_name(model))

    def budget_warnings(self, rows: Iterable[tuple[Candidate, Row]]) -> list[str]:
        """Return one line for each candidate with limits that could not be judged: how often, and the first reason."""
        found: dict[str, list[dict[str, str]]] = {}
        for candidate, row in rows:
            if _dict(row.get("meta")).get("budget_unjudged"):
                run = Run(output=None, model=row.get("model"), usage=row.get("usage"))
                found.setdefault(candidate.id, []).append(
                    judge(candidate.budget, run, self.prices, candidate.model).unjudged
                )
        return [
            f"{candidate}: {', '.join(each[0])} not judged in {plural(len(each), 'execution')}: "
            f"{'; '.join(dict.fromkeys(each[0].values()))}"
            for candidate, each in found.items()
        ]

    def worst_case(self, execution: Execution) -> float | None:
        """Return the USD that an execution may cost, None without a ceiling: nothing is reserved then."""
        if self.ceiling is None:
            return None
        return worst_case(execution, self.prices, self.settings.trial_cost) or 0.0

    def worst_case_total(self, executions: Iterable[Execution]) -> WorstCase:
        """Return the USD that *executions* may cost in all, and of how many that is not known."""
        return worst_case_total(executions, self.prices, self.settings.trial_cost)

    def ledger(self, share: float | None = None) -> Ledger | None:
        """Return the account that holds the ceiling, or this *share* of it; None without a ceiling."""
        ceiling = share if share is not None else self.ceiling
        whose = " of this worker's share" if share is not None else ""
        return Ledger(ceiling, whose) if ceiling is not None else None

    def check(self, executions: Sequence[Execution], workers: int = 1) -> None:
        """Refuse what cannot be run within the rules that were asked for.

        :param executions: what is to be run; those of candidates that are not qualified here are skipped, and cost
            nothing
        :param workers: among how many processes the ceiling is shared
        :raises OptionError: for candidates that are not qualified although they must be, for a ceiling over spend that
            has no price, and for one below what any execution may cost
        """
        refusals = {reason for e in executions if (reason := self.refusal(e.candidate)) is not None}
        if refusals and self.settings.require_qualified:
            raise OptionError(f"--hillclimb-require-qualified: {'; '.join(sorted(refusals))}")
        if self.ceiling is not None:
            paying = [e for e in executions if self.refusal(e.candidate) is None]
            self._check_ceiling(paying, self.ceiling, workers)

    def out_of_reach(self, executions: Iterable[Execution], workers: int = 1) -> dict[str, float]:
        """Return who can never be measured: what an execution may cost, where that is above a worker's share."""
        if self.ceiling is None:
            return {}
        share, model = self.ceiling / workers, self.settings.model
        return {_who(e, model): cost for e in executions if (cost := self.worst_case(e) or 0.0) > share}

    def _check_ceiling(self, executions: Sequence[Execution], ceiling: float, workers: int) -> None:
        rate, cases = self.settings.trial_cost, {}
        for execution in executions:
            who = _who(execution, self.settings.model)
            cases[who] = worst_case(execution, self.prices, rate)
            model = execution.candidate.model if execution.candidate is not None else self.settings.model
            if rate is None and model not in self.prices:
                raise OptionError(
                    f"--hillclimb-max-cost: the usage of {who} has no price: add one (hillclimb_prices in the ini file "
                    "or prices in _state.json), or state a rate for each execution with --hillclimb-trial-cost"
                )
        if unknown := [who for who, cost in cases.items() if cost is None]:
            remedy = "state a rate for each execution with --hillclimb-trial-cost"
            if self.manifest is not None:
                remedy = f"give it a max_cost_usd in the manifest, or {remedy}"
            raise OptionError(
                f"--hillclimb-max-cost: what {', '.join(unknown[:_LISTED])} may cost is not known: {remedy}"
            )
        least = min((cost for cost in cases.values() if cost is not None), default=0.0)
        if least > ceiling / workers:
            each = f" ({ceiling / workers:g} for each of {plural(workers, 'worker')})" if workers > 1 else ""
            raise OptionError(
                f"--hillclimb-max-cost: {ceiling:g} USD{each} is below the {least:g} USD that one execution may cost"
            )


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _who(execution: Execution, model: str | None) -> str:
    if execution.candidate is not None:
        return f"{execution.candidate.id} ({execution.candidate.model})"
    return f"the model {model}" if model else "an execution without --hillclimb-model"
