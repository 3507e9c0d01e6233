"""What one execution is held to: the run's own options, and the budget of its candidate where that is tighter."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_hillclimb.engine.retry import MAX_TRIES
from pytest_hillclimb.model.candidate import Budget
from pytest_hillclimb.model.prices import PriceTable, total_tokens
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.schedule.plan import Execution


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one execution.

    ``model`` is the requested model, None when none is; ``timeout`` the ceiling in seconds, 0 for none, and ``ceiling``
    how messages call it; ``tries`` how often app, and judge, are called at most.
    """

    model: str | None
    timeout: float
    ceiling: str
    tries: int = MAX_TRIES

    @classmethod
    def of(cls, execution: Execution, settings: Settings) -> Limits:
        """Return the limits of *execution* in a run with these options."""
        timeout, ceiling = settings.timeout, f"{settings.timeout:g}s wall-clock ceiling"
        candidate = execution.candidate
        if candidate is None:
            return cls(settings.model, timeout, ceiling)
        budget = candidate.budget
        if budget.max_latency_ms is not None and not 0 < timeout <= budget.max_latency_ms / 1000:
            timeout = budget.max_latency_ms / 1000
            ceiling = f"{timeout:g}s wall-clock ceiling (max_latency_ms of {candidate.id})"
        tries = MAX_TRIES if budget.max_attempts is None else min(MAX_TRIES, budget.max_attempts)
        return cls(candidate.model, timeout, ceiling, tries)


def exceeded(budget: Budget, run: Run, prices: PriceTable, model: str | None) -> list[str]:
    """Return the names of the limits that the usage of *run* is over; a limit that is reached exactly is not.

    A cost that is not priced, and tokens that are not counted, exceed nothing: they are not known.

    :param model: the model to price the usage by when the run does not name one
    """
    over = []
    tokens = total_tokens(run.usage)
    if budget.max_total_tokens is not None and tokens is not None and tokens > budget.max_total_tokens:
        over.append("max_total_tokens")
    cost = prices.cost(run.usage, run.model or model) if budget.max_cost_usd is not None else None
    if budget.max_cost_usd is not None and cost is not None and cost > budget.max_cost_usd + _ROUNDING_USD:
        over.append("max_cost_usd")
    return over


_ROUNDING_USD = 1e-12  # sums of floats that should be equal to a limit may be this much above it
