"""The table of candidates, and what is told of an exceeded budget."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hillclimb.model.candidate import Budget
from pytest_hillclimb.model.prices import RowCost
from pytest_hillclimb.report.candidates import candidate_lines, money
from pytest_hillclimb.report.detail import missed_gist, over_budget
from pytest_hillclimb.report.summary import cost_lines, missed_lines
from pytest_hillclimb.stats.means import Mean

COMPLETED, FAILED, INFRA, SKIPPED = "completed", "candidate_failure", "infrastructure_failure", "skipped"


def test_classes_costs_and_means_stand_in_columns() -> None:
    counted = [("luna", COMPLETED), ("luna", COMPLETED), ("a-candidate-of-some-length", FAILED), ("luna", INFRA)]
    costs = {"luna": [RowCost(1.5, 0.25), RowCost(10.0)], "a-candidate-of-some-length": [RowCost(None, None, 1)]}
    metrics = {"luna": {"pass": Mean(0.5, 2, 2)}, "other": {"f1": Mean(0.25, 1, 1)}}
    assert candidate_lines(counted, costs, metrics) == [
        "candidate                  completed  failed  infra  skipped    cost USD   pass  f1",
        "luna                               2       0      1        0     11.7500  0.500   -",
        "a-candidate-of-some-length         0       1      0        0  not priced      -   -",
    ]


def test_the_longest_id_that_is_allowed_is_shown_in_full() -> None:
    name = "a" * 40
    assert candidate_lines([(name, COMPLETED)], {}, {})[1].split()[0] == name


def test_only_three_metrics_have_a_column() -> None:
    metrics = {"luna": {name: Mean(1.0, 1, 1) for name in ("a", "b", "c", "d")}}
    title, _ = candidate_lines([("luna", COMPLETED)], {}, metrics)
    assert title.split() == ["candidate", "completed", "failed", "infra", "skipped", "cost", "USD", "a", "b", "c"]


def test_the_order_is_that_in_which_candidates_first_appear() -> None:
    lines = candidate_lines([("b", SKIPPED), ("a", SKIPPED), ("b", COMPLETED)], {}, {})
    assert [line.split()[0] for line in lines] == ["candidate", "b", "a"]


def test_no_candidates_no_table() -> None:
    assert candidate_lines([], {}, {}) == []


def test_names_cannot_forge_lines() -> None:
    metrics = {"a\nb": {"x\x1b[2J\ny": Mean(1.0, 1, 1)}}
    lines = candidate_lines([("a\nb", COMPLETED)], {}, metrics)
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (RowCost(), "-"),
        (RowCost(0.0), "0.0000"),
        (RowCost(1.23456, 2), "3.2346"),
        (RowCost(None, 0.5), "0.5000"),
        (RowCost(1.0, None, 2), "1.0000+"),
        (RowCost(None, None, 1), "not priced"),
    ],
)
def test_money_says_when_it_is_more_than_that_or_not_known(cost: RowCost, shown: str) -> None:
    assert money(cost) == shown


@pytest.mark.parametrize(
    ("cost", "ceiling", "withheld", "lines"),
    [
        (RowCost(), None, 0, []),
        (RowCost(1.0, 0.5), None, 0, ["cost       1.0000 USD app, 0.5000 USD judge"]),
        (RowCost(None, None, 2), None, 0, ["cost       2 usages not priced"]),
        (RowCost(1.0), 12.0, 0, ["cost       1.0000 USD app", "ceiling    0.9000 of 12 USD charged"]),
        (RowCost(), 12.0, 1, ["ceiling    0.9000 of 12 USD charged; it kept 1 execution from being run"]),
    ],
)
def test_money_of_a_run(cost: RowCost, ceiling: float | None, withheld: int, lines: list[str]) -> None:
    assert cost_lines(cost, ceiling=ceiling, charged=0.9, withheld=withheld) == lines


def row(**more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 1}
    return {"grade": {"pass": 1}, "explanation": {"pass": "fine"}, "usage": usage, **more}


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (None, []),
        ([], []),
        (["max_cost_usd"], ["max_cost_usd 0.25 of 0.2"]),
        (["max_total_tokens", "max_cost_usd"], ["max_total_tokens 101 of 100", "max_cost_usd 0.25 of 0.2"]),
        (["max_of_a_later_version"], ["max_of_a_later_version"]),
    ],
)
def test_an_exceeded_limit_is_told_with_what_was_used(names: list[str] | None, told: list[str]) -> None:
    given = row(meta={"budget_exceeded": names} if names is not None else {})
    budget = Budget(max_cost_usd=0.2, max_total_tokens=100)
    assert over_budget(given, budget, 0.25) == told
    assert over_budget(given) == (names or [])


def test_what_is_not_known_any_more_is_left_out() -> None:
    given = row(meta={"budget_exceeded": ["max_cost_usd", "max_total_tokens"]}, usage=None)
    assert over_budget(given, Budget(max_cost_usd=0.2), None) == ["max_cost_usd", "max_total_tokens"]


@pytest.mark.parametrize("meta", [None, "text", {"budget_exceeded": None}])
def test_a_row_of_another_tool_exceeds_nothing(meta: object) -> None:
    assert over_budget(row(meta=meta)) == []


def test_the_gist_begins_with_the_budget() -> None:
    assert missed_gist(row(), ["max_cost_usd 3 of 2"]) == "budget exceeded: max_cost_usd 3 of 2; pass 1: fine"
    assert missed_gist(row(explanation=None), ["a", "b"]) == "budget exceeded: a, b; pass 1"
    assert missed_gist(row()) == "pass 1: fine"


def test_misses_that_are_not_red_name_the_limits() -> None:
    over = row(meta={"budget_exceeded": ["max_cost_usd"]})
    assert missed_lines([("x::a", over), ("x::b", row()), ("x::c", None)]) == [
        "missed     x::a - budget exceeded: max_cost_usd; pass 1: fine",
        "missed     x::b - pass 1: fine",
        "missed     x::c - score None",
    ]
