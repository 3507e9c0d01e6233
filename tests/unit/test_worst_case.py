"""What executions may cost at most."""

from __future__ import annotations

from typing import Any

import pytest
from matrix_files import CASES, GOLDEN, nightly

from pytest_hillclimb.model.candidate import Candidate
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.prices import PriceTable
from pytest_hillclimb.schedule.matrix import matrix_plan
from pytest_hillclimb.schedule.plan import Execution
from pytest_hillclimb.schedule.worst_case import WorstCase, worst_case, worst_case_total

PRICES = PriceTable({}).with_prices(
    {
        "m": {"in": 2, "out": 10},
        "write-heavy": {"in": 8, "out": 10},
        "long": {"in": 1, "out": 4, "long_prompt": {"above": 1000, "in": 5, "out": 20}},
        "free": {"in": 0, "out": 0},
    },
    "test",
)


def execution(model: str = "m", **budget: Any) -> Execution:
    fields = {"id": "a", "slot_id": "s", "model": model, "budget": budget}
    return Execution(Case(id="c"), 0, 0, Candidate.model_validate(fields))


@pytest.mark.parametrize("seed", list(GOLDEN["schedules"]))
@pytest.mark.parametrize("rotation", range(7))
def test_the_worst_case_of_the_nightly_schedule_is_the_golden_one(seed: str, rotation: int) -> None:
    plan = matrix_plan(CASES, 1, nightly(), schedule="balanced", rotation=rotation, seed=seed)
    total = worst_case_total(plan, PRICES, None)
    assert total.usd == pytest.approx(GOLDEN["schedules"][seed][rotation]["worst_case_usd"], abs=1e-12)
    assert total.unknown == 0


@pytest.mark.parametrize(
    ("planned", "usd"),
    [
        (execution(max_cost_usd=0.5, max_total_tokens=10), 0.5),
        (execution(max_cost_usd=0.0), 0.0),
        (execution("unpriced", max_cost_usd=0.5), 0.5),
        (execution(max_total_tokens=100_000), 1.0),
        (execution("write-heavy", max_total_tokens=1_000_000), 16.0),
        (execution("long", max_total_tokens=1000), 0.004),
        (execution("long", max_total_tokens=1001), 0.02002),
        (execution("free", max_total_tokens=1000), 0.0),
    ],
)
def test_a_candidates_own_limits_bound_what_it_may_cost(planned: Execution, usd: float) -> None:
    assert worst_case(planned, PRICES, 7.0) == pytest.approx(usd, abs=1e-12)


@pytest.mark.parametrize(
    "planned",
    [
        execution(),
        execution("unpriced", max_total_tokens=10),
        execution("M", max_total_tokens=10),
        Execution(Case(id="c"), 0, 0),
    ],
)
def test_without_a_limit_or_a_price_it_is_what_the_user_states(planned: Execution) -> None:
    assert worst_case(planned, PRICES, 0.25) == 0.25
    assert worst_case(planned, PRICES, None) is None


def test_a_total_counts_what_it_does_not_know() -> None:
    planned = [execution(max_cost_usd=0.1)] * 10 + [execution()] * 2
    assert worst_case_total(planned, PRICES, None) == WorstCase(1.0, 2)
    assert worst_case_total(planned, PRICES, 0.5) == WorstCase(2.0, 0)
    assert worst_case_total([], PRICES, None) == WorstCase(0.0, 0)
