"""What executions may cost at most, before any of them has run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_hillclimb.model.prices import Price, PriceTable, Rates
from pytest_hillclimb.schedule.plan import Execution

_PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class WorstCase:
    """What several executions may cost at most: ``usd`` for those it is known of, and how many it is ``unknown`` of."""

    usd: float
    unknown: int


def worst_case(execution: Execution, prices: PriceTable, trial_cost: float | None) -> float | None:
    """Return what one execution may cost at most, in US dollars, None when that is not known.

    It is ``max_cost_usd`` of its candidate (which, if 0, says nothing of a model without a price), else
    ``max_total_tokens`` at the highest price that a token of its model has (standard speed, no surcharge of a region),
    else *trial_cost*. A candidate's limits hold for the try that is scored: tries that failed before it, and judges,
    come on top.

    :param trial_cost: US dollars that the user states for an execution, None when none are stated
    """
    if execution.candidate is None:
        return trial_cost
    budget, model = execution.candidate.budget, execution.candidate.model
    if budget.max_cost_usd is not None and (budget.max_cost_usd or model in prices):
        return budget.max_cost_usd
    if budget.max_total_tokens is not None and model in prices:
        return budget.max_total_tokens * _highest(prices[model], budget.max_total_tokens) / _PER_MILLION
    return trial_cost


def worst_case_total(executions: Iterable[Execution], prices: PriceTable, trial_cost: float | None) -> WorstCase:
    """Return what *executions* may cost at most together."""
    costs = [worst_case(execution, prices, trial_cost) for execution in executions]
    return WorstCase(math.fsum(cost for cost in costs if cost is not None), costs.count(None))


def _highest(price: Price, tokens: int) -> float:
    """Return the most that one of *tokens* may cost, in US dollars per million."""
    long = price.long_prompt
    rates: list[Rates] = [price, long] if long is not None and tokens > long.above else [price]
    return max(
        each
        for rate in rates
        for each in (rate.input, rate.output, rate.cache_read, rate.cache_write_5m, rate.cache_write_1h)
    )
