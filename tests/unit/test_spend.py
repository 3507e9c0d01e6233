"""What rows have cost together, and case by case."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hillclimb.model.prices import PriceTable
from pytest_hillclimb.report.money import dollars
from pytest_hillclimb.report.summary import case_cost_lines, cost_lines, variant_cost_lines
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
    why = "(there is no price for model 'new'; prices come from hillclimb_prices)"
    assert line == f"in all     1.0000 USD since the variant began, 1 usage not priced {why}; most for b 1.0000"


def test_without_any_price_nothing_is_said_of_the_variant() -> None:
    assert variant_cost_lines(of({"prompt_id": "a", "model": "new", "usage": MILLION})) == []


def test_the_ceiling_says_what_it_was_charged_and_what_it_kept_from_being_run() -> None:
    cost = of({"prompt_id": "a", "model": "m", "usage": MILLION}).total
    assert cost_lines(cost, ceiling=None, charged=0.0, withheld=0) == ["cost       1.0000 USD app"]
    assert cost_lines(cost, ceiling=12, charged=1.5, withheld=1)[1] == (
        "ceiling    1.5000 of 12 USD charged; it kept 1 execution from being run"
    )


def told(*rows: dict[str, Any]) -> list[str]:
    return cost_lines(of(*rows).total, ceiling=None, charged=0.0, withheld=0)


SCORED = {"prompt_id": "a", "model": "m", "usage": MILLION}
LOCAL = {"prompt_id": "a"}


@pytest.mark.parametrize(
    ("rows", "unknown"),
    [
        ([SCORED], 0),
        ([SCORED, {"prompt_id": "b", "model": "m", "usage": None}], 1),
        ([SCORED, LOCAL, LOCAL], 2),
        ([SCORED, {"prompt_id": "b", "failure_class": "timeout"}], 1),
        ([SCORED, {"prompt_id": "b", "failure_class": "rate_limited"}], 0),
        ([SCORED, {"prompt_id": "b", "failure_class": "rate_limited", "tries_of_unknown_cost": 2}], 1),
        ([{**SCORED, "meta": {"tries_of_unknown_cost": 1}}], 1),
        ([{**SCORED, "judge_model": "j"}], 1),
        ([{**SCORED, "judge_model": "j", "judge_usage": MILLION}], 0),
        ([{"prompt_id": "b", "failure_class": "timeout", "retry_usage": [{**MILLION, "model": "m"}]}], 1),
    ],
)
def test_executions_that_do_not_say_what_they_used_are_counted(rows: list[dict[str, Any]], unknown: int) -> None:
    found = of(*rows)
    assert found.total.unknown == unknown
    [line] = told(*rows)
    assert line.startswith("cost       1.0000 USD app")
    assert ("of unknown cost" in line) == bool(unknown)
    assert ("of unknown cost" in variant_cost_lines(found)[0]) == bool(unknown)


def test_an_app_that_never_reports_usage_is_not_nagged_about() -> None:
    assert told(LOCAL, LOCAL, {"prompt_id": "b", "failure_class": "error"}) == []
    assert told({"prompt_id": "a", "model": "m"}, LOCAL) == ["cost       not known: no usage was reported"]


def test_what_each_case_has_cost_is_told_the_dearest_first() -> None:
    lines = case_cost_lines(
        of(
            {"prompt_id": "cheap", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 0}},
            {"prompt_id": "dear", "model": "m", "usage": MILLION, "judge_model": "j", "judge_usage": MILLION},
            {"prompt_id": "gap", "model": "m", "usage": None},
            {"prompt_id": "free"},
        )
    )
    assert lines == [
        "per case   dear: 1.0000 USD app, 10.0000 USD judge",
        "per case   cheap: 0.000005 USD app",
        "per case   gap: 1 execution of unknown cost",
        "per case   free: no usage",
    ]
    many = case_cost_lines(of(*({**SCORED, "prompt_id": f"c{n}"} for n in range(52))))
    assert len(many) == 51
    assert many[-1] == "per case   ... and 2 more"


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (0.0, "0.0000"),
        (12.34567, "12.3457"),
        (0.001, "0.0010"),
        (0.0005, "0.0005"),
        (0.00012345, "0.0001234"),
        (5e-6, "0.000005"),
        (1.5e-20, "1.500e-20"),
    ],
)
def test_a_small_amount_is_never_shown_as_nothing(usd: float, shown: str) -> None:
    assert dollars(usd) == shown


def test_reasons_are_few() -> None:
    [line] = told(*({"prompt_id": "a", "model": f"new-{n}", "usage": MILLION} for n in range(5)))
    assert line.startswith("cost       5 usages not priced (there is no price for model 'new-0'; there is no price for")
    assert line.endswith("; 2 more reasons; prices come from hillclimb_prices)")
