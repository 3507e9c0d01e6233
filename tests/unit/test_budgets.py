"""Judging a budget by usage that tells all, a part, or nothing; and by names that a price table does not have."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hillclimb.engine.limits import judge
from pytest_hillclimb.engine.served import requested_name
from pytest_hillclimb.model.candidate import Budget
from pytest_hillclimb.model.prices import PriceTable
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.model.usage import least_tokens, total_tokens
from pytest_hillclimb.report.summary import cost_lines

TABLE = PriceTable({}).with_prices({"m-latest": {"in": 1_000_000, "out": 2_000_000}}, "test")
BOTH = {"max_total_tokens": 10, "max_cost_usd": 10}


def judged(usage: Any, model: str | None = None, **budget: float) -> tuple[list[str], dict[str, str]]:
    limits = Budget.model_validate(budget or BOTH)
    found = judge(limits, Run(output="x", model=model, usage=usage), TABLE, "m-latest")
    return found.exceeded, found.unjudged


@pytest.mark.parametrize(
    ("usage", "exceeded", "unjudged"),
    [
        ({"input_tokens": 10, "output_tokens": 0}, [], []),
        ({"input_tokens": 11}, ["max_total_tokens", "max_cost_usd"], []),
        ({"input_tokens": 10}, [], ["max_total_tokens", "max_cost_usd"]),
        ({"output_tokens": 6}, ["max_cost_usd"], ["max_total_tokens"]),
        ({"input_tokens": "many", "output_tokens": 11}, ["max_total_tokens", "max_cost_usd"], []),
        ({"prompt_tokens": 6, "completion_tokens": 5}, ["max_total_tokens"], ["max_cost_usd"]),
        ({"prompt_tokens": 6, "completion_tokens": 4}, [], ["max_cost_usd"]),
        ({"prompt_tokens": 11}, ["max_total_tokens"], ["max_cost_usd"]),
        ({"total_tokens": 11}, ["max_total_tokens"], ["max_cost_usd"]),
        ({"input_tokens": 11, "output_tokens": 0, "thinking_tokens": 5}, ["max_total_tokens", "max_cost_usd"], []),
        ({"cache_read_input_tokens": 11}, ["max_total_tokens"], ["max_cost_usd"]),
        ({"by_model": {"m-latest": {"input_tokens": 11}}}, ["max_total_tokens", "max_cost_usd"], []),
        ({"input_tokens": 5, "output_tokens": 1, "service_tier": "other"}, [], ["max_cost_usd"]),
        ({}, [], ["max_total_tokens", "max_cost_usd"]),
        (None, [], ["max_total_tokens", "max_cost_usd"]),
    ],
)
def test_a_known_part_above_a_limit_exceeds_it_and_any_other_is_not_judged(
    usage: object, exceeded: list[str], unjudged: list[str]
) -> None:
    over, not_known = judged(usage)
    assert (over, list(not_known)) == (exceeded, unjudged)
    assert all(not_known.values()), "each with its reason"


def test_what_is_not_limited_is_not_judged() -> None:
    assert judged(None, max_attempts=2) == ([], {})


@pytest.mark.parametrize(
    ("served", "dollars"),
    [("m-20260101", 11.0), ("m-2026-01-01", 11.0), ("m-latest", 11.0), ("m-large-20260101", None), ("m", None)],
)
def test_a_dated_name_without_a_price_costs_what_the_requested_one_does(served: str, dollars: float | None) -> None:
    usage = {"input_tokens": 11, "output_tokens": 0}
    row = {"model": served, "usage": usage, "judge_model": served, "judge_usage": usage}
    cost = TABLE.row_cost(row, "m-latest", requested_name("m-latest"))
    assert cost.app == dollars
    assert cost.judge == (11.0 if served == "m-latest" else None), "nobody knows how the judge was requested"
    over, unjudged = judged(usage, served, max_cost_usd=10)
    reason = f"there is no price for model {served!r}"
    assert (over, unjudged) == ((["max_cost_usd"], {}) if dollars else ([], {"max_cost_usd": reason}))


def test_a_dated_name_with_a_price_has_its_own() -> None:
    table = TABLE.with_prices({"m-20260101": {"in": 3_000_000, "out": 0}}, "test")
    usage = {"input_tokens": 1, "output_tokens": 0}
    assert table.cost(usage, "m-20260101", requested_name("m-latest")) == 3
    assert requested_name(None)("m-20260101") == "m-20260101"


@pytest.mark.parametrize("value", [None, True, -1, 1.5, "1", [1], 10**400])
def test_what_is_no_count_adds_nothing_to_the_least(value: object) -> None:
    names = ("input_tokens", "reasoning_tokens", "cache_creation_input_tokens", "total_tokens", "prompt_tokens")
    assert least_tokens({**dict.fromkeys(names, value), "output_tokens": 2}) == 2
    assert total_tokens({"prompt_tokens": value, "completion_tokens": 2}) is None


def test_reasons_are_told_the_most_frequent_first() -> None:
    usage = {"input_tokens": 1, "output_tokens": 0}
    tries = [{**usage, "model": "other"}, {**usage, "model": "other"}, {**usage, "model": "b"}]
    cost = TABLE.row_cost({"model": "m-latest", "usage": usage, "meta": {"retry_usage": tries}})
    [line] = cost_lines(cost, ceiling=None, charged=0.0, withheld=0)
    why = "there is no price for model 'other'; there is no price for model 'b'; prices come from hillclimb_prices"
    assert line == f"cost       1.0000 USD app, 3 usages not priced ({why})"
