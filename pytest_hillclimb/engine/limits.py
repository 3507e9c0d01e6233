"""What one execution is held to: the run's own options, and the budget of its candidate where that is tighter."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_hillclimb.engine.retry import MAX_TRIES
from pytest_hillclimb.engine.served import requested_name
from pytest_hillclimb.model.candidate import Budget
from pytest_hillclimb.model.prices import PriceTable, total_tokens
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.model.usage import least_tokens
from pytest_hillclimb.schedule.plan import Execution

_ROUNDING_USD = 1e-12  # sums of floats that should be equal to a limit may be this much above it


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


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the usage of an attempt says of its budget.

    ``exceeded`` names the limits that it is over, ``unjudged`` those that it says too little for, with the reason.
    """

    exceeded: list[str]
    unjudged: dict[str, str]


def judge(budget: Budget, run: Run, prices: PriceTable, model: str | None) -> Judgement:
    """Return which limits the usage of *run* is over; a limit that is reached exactly is not.

    Where a usage tells only a part, a limit that this part is over is exceeded, and any other cannot be judged.

    :param model: the requested model: usage that names none, or one that answers for it and has no price, costs as much
    """
    over: list[str] = []
    unjudged: dict[str, str] = {}
    if (limit := budget.max_total_tokens) is not None:
        tokens = total_tokens(run.usage)
        if (least_tokens(run.usage) if tokens is None else tokens) > limit:
            over.append("max_total_tokens")
        elif tokens is None:
            unjudged["max_total_tokens"] = "the usage does not tell its tokens" if run.usage else "there is no usage"
    if (max_cost := budget.max_cost_usd) is not None:
        asked = (run.usage, run.model or model, requested_name(model))
        cost = prices.cost(*asked)
        if (prices.least_cost(*asked) if cost is None else cost) > max_cost + _ROUNDING_USD:
            over.append("max_cost_usd")
        elif (reason := prices.why_unpriced(*asked)) is not None:
            unjudged["max_cost_usd"] = reason
    return Judgement(over, unjudged)
