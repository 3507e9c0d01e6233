"""Counting a run: one pass over its outcomes, from which the summary and the progress line are made."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.model.prices import RowCost, summed
from pytest_hillclimb.model.rows import Row


@dataclass
class Tally:
    """What this pass of a run came to. Tokens and costs are of this pass, failed tries included.

    ``cost_of`` prices a row; ``costs`` holds what the rows of each candidate have cost, under None where there are no
    candidates; ``charged`` is what the campaign's ceiling was charged with, in USD, and ``withheld`` counts the
    executions that it kept from being started.
    """

    cost_of: Callable[[Row], RowCost] | None = None
    to_run: int = 0
    scored: int = 0
    passed: int = 0
    missed: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    retries: int = 0
    judge_retries: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    judge_tokens: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    costs: dict[str | None, list[RowCost]] = field(default_factory=dict)
    charged: float = 0.0
    withheld: int = 0
    scores: list[tuple[str, str | None, Mapping[str, float]]] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """How many executions could not be measured."""
        return sum(self.errors.values())

    @property
    def done(self) -> int:
        """How many executions have ended with a row."""
        return self.scored + self.failed

    def add(self, outcome: Outcome) -> None:
        """Count an outcome of this pass."""
        row = outcome.row
        if outcome.kind is Kind.SCORED and row is not None:
            self.scored += 1
            self.passed += outcome.passed is True
            self.missed += outcome.passed is False
            self.scores.append((row["prompt_id"], row["status"], row["grade"]))
        elif outcome.kind is Kind.FAILED and row is not None:
            code = row.get("code")
            self.errors[row["failure_class"] + (f" {code}" if code else "")] += 1
        else:
            self.skipped += 1
        self.charged += outcome.charged
        self.withheld += outcome.withheld
        if row is not None:
            self._add_spend(row)
            self._add_cost(row)

    def progress_line(self, variant: str, elapsed: float) -> str:
        """Return the progress line of the public format; *elapsed* is in seconds."""
        line = f"[{variant}] {self.done}/{self.to_run} done ({self.scored} ok, {self.failed} failed)"
        line += f", {_rounded(elapsed)}s elapsed"
        if self.done:
            line += f", ~{_rounded(elapsed / self.done * (self.to_run - self.done))}s left"
        return line

    def cost(self) -> RowCost:
        """Return what this pass has cost."""
        return summed(cost for costs in self.costs.values() for cost in costs)

    def _add_cost(self, row: Row) -> None:
        if self.cost_of is None:
            return
        meta = row.get("meta")
        candidate = meta.get("candidate_id") if isinstance(meta, dict) else None
        self.costs.setdefault(candidate, []).append(self.cost_of(row))

    def _add_spend(self, row: Row) -> None:
        # What the engine wrote sits on an errors row itself, and in the meta of a results row beside a user's own keys.
        meta = row.get("meta")
        account = row if "failure_class" in row else meta if isinstance(meta, dict) else {}
        self.retries += _count(account.get("retries"))
        self.judge_retries += _count(account.get("judge_retries"))
        if isinstance(model := row.get("model"), str):
            self.models[model] += 1
        _add_tokens(self.tokens, row.get("usage"))
        _add_tokens(self.judge_tokens, row.get("judge_usage"))
        tries = account.get("retry_usage")
        for usage in tries if isinstance(tries, list) else ():
            if isinstance(usage, dict):
                _add_tokens(self.judge_tokens if "judge_model" in usage else self.tokens, usage)


def _add_tokens(counter: Counter[str], usage: object) -> None:
    if not isinstance(usage, dict):
        return
    for name, value in usage.items():
        if name.endswith("_tokens") and isinstance(value, int) and not isinstance(value, bool):
            counter[name] += value


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _rounded(value: float) -> int:
    """Round as the format's other runner does: halves go up."""
    return math.floor(value + 0.5)
