"""What rows have cost together, and case by case."""

from __future__ import annotations

from typing import Any

from pytest_hillclimb.model.prices import PriceTable
from pytest_hillclimb.report.summary import cost_lines, variant_cost_lines
from pytest_hillclimb.stats.spend import Spend, spend

TABLE = PriceTable({}).with_prices({"m": {"in": 1, "out": 2}, "j": {"in": 10, "out": 20}}, "test")
MILLION = {"input_tokens": 1_000_000, "output_tokens": 0}


def of(*rows: dict[str, Any]) -> Spend:
    return spend(rows, TABLE.row_cost)


def test_app_and_judge_are_added_up_apart() -> None:
    found = of({"prompt_id": "a", "model": "m", "usage": MILLION, "judge_model": "j", "judge_usage": MILLION})
    assert (found.total.app, found.total.judge, found.total.total) == (1.0, 10.0, 11.0)


def test_repetitions_candidates_and_failures_of_a_case_are_one_sum() -> None:
    found = of(
        {"prompt_id": "a.x", "meta": {"case_id": "a"}, "model": "m", "usage": MILLION},
        {"prompt_id": "a.y", "meta": {"case_id": "a"}, "model": "m", "usage": MILLION},
        {"prompt_id": "a.y", "meta": {"case_id": "a"}, "failure_class": "timeout", "model": "m", "usage": MILLION},
        {"prompt_id": "b", "failure_class": "error", "retry_usage": [{**MILLION, "model": "m"}]},
    )
    assert {case: cost.total for case, cost in found.by_case.items()} == {"a": 3.0, "b": 1.0}
    assert found.dearest(1) == [("a", 3.0)]


def test_what_has_no_price_is_counted_and_never_free() -> None:
    found = of({"prompt_id": "a", "model": "new", "usage": MILLION}, {"prompt_id": "b", "model": "m", "usage": MILLION})
    assert (found.total.total, found.total.unpriced) == (1.0, 1)
    assert found.dearest(5) == [("b", 1.0)]
    [line] = variant_cost_lines(found)
    assert line == "in all     1.0000 USD since the variant began, 1 usage not priced; most for b 1.0000"


def test_without_any_price_nothing_is_said_of_the_variant() -> None:
    assert variant_cost_lines(of({"prompt_id": "a", "model": "new", "usage": MILLION})) == []


def test_the_ceiling_says_what_it_was_charged_and_what_it_kept_from_being_run() -> None:
    cost = of({"prompt_id": "a", "model": "m", "usage": MILLION}).total
    assert cost_lines(cost, ceiling=None, charged=0.0, withheld=0) == ["cost       1.0000 USD app"]
    assert cost_lines(cost, ceiling=12, charged=1.5, withheld=1)[1] == (
        "ceiling    1.5000 of 12 USD charged; it kept 1 execution from being run"
    )
