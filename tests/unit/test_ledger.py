"""The ledger of a campaign: what is reserved and settled, and that the ceiling holds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hillclimb.engine.ledger import Ledger

AMOUNTS = st.floats(0, 3, allow_nan=False).map(lambda x: round(x, 2))


@pytest.mark.parametrize(
    ("ceiling", "costs", "started"),
    [
        (1.0, [0.4, 0.4, 0.4, 0.4], 3),
        (1.0, [0.5, 0.5, 0.1], 2),
        (0.1, [5.0, 0.1], 1),
        (12, [1.5] * 10, 8),
        (1.0, [0.1] * 12, 10),
    ],
)
def test_a_campaign_without_worst_cases_ends_once_the_ceiling_is_reached(
    ceiling: float, costs: list[float], started: int
) -> None:
    ledger = Ledger(ceiling)
    ran = []
    for i, cost in enumerate(costs):
        if ledger.reserve(i, 0):
            ran.append(ledger.settle(i, cost))
    assert ran == [True] * started
    assert ledger.spent == pytest.approx(sum(costs[:started]))


def test_a_worst_case_that_would_pass_the_ceiling_is_not_granted() -> None:
    ledger = Ledger(1.0)
    assert ledger.reserve("a", 0.4)
    assert ledger.reserve("b", 0.6)
    assert not ledger.reserve("c", 0)
    assert (ledger.reserved, ledger.remaining, ledger.in_flight, ledger.spent) == (1.0, 0.0, 2, 0.0)
    assert ledger.settle("b", 0.1)
    assert not ledger.reserve("c", 0.6)
    assert ledger.reserve("c", 0.5)


def test_sums_are_decimal() -> None:
    ledger = Ledger(0.3)
    assert all(ledger.reserve(key, 0.1) for key in "abc")
    assert ledger.remaining == 0
    assert all(ledger.settle(key, 0.1) for key in "abc")
    assert ledger.spent == 0.3


def test_the_smallest_ceiling_is_one() -> None:
    ledger = Ledger(1e-320)
    assert not ledger.reserve("a", 1e-319)
    assert ledger.reserve("a", 1e-320)


def test_an_end_that_is_reported_twice_is_charged_once() -> None:
    ledger = Ledger(1.0)
    ledger.reserve("a", 0.5)
    assert ledger.settle("a", 0.5)
    assert not ledger.settle("a", 0.5)
    assert not ledger.settle("never started", 0.5)
    assert ledger.spent == 0.5


def test_a_trial_is_not_reserved_for_twice() -> None:
    ledger = Ledger(1.0)
    ledger.reserve("a", 0.1)
    with pytest.raises(ValueError, match="has a reservation already"):
        ledger.reserve("a", 0.1)


@pytest.mark.parametrize("amount", [-0.01, float("nan"), float("inf")])
def test_only_amounts_of_money_are_taken(amount: float) -> None:
    ledger = Ledger(1.0)
    ledger.reserve("a", 0.1)
    for call in (Ledger, lambda x: ledger.reserve("b", x), lambda x: ledger.settle("a", x)):
        with pytest.raises(ValueError, match="not an amount of money"):
            call(amount)
    with pytest.raises(ValueError, match="above 0"):
        Ledger(0)
    assert (ledger.in_flight, ledger.spent) == (1, 0)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([0.1, 1.0, 5.0]),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["reserve", "settle"]), AMOUNTS), max_size=40),
)
def test_spend_passes_the_ceiling_only_by_what_trials_cost_beyond_their_reservations(
    ceiling: float, steps: list[tuple[int, str, float]]
) -> None:
    ledger = Ledger(ceiling)
    held: dict[int, float] = {}
    beyond = 0.0
    for key, step, amount in steps:
        if step == "reserve" and key not in held:
            left = ledger.remaining
            if ledger.reserve(key, amount):
                held[key] = amount
                assert left > 0
                assert amount <= left
        elif step == "settle" and ledger.settle(key, amount):
            beyond += max(0.0, amount - held.pop(key))
        assert ledger.in_flight == len(held)
        assert ledger.reserved == pytest.approx(sum(held.values()))
        assert ledger.spent + ledger.reserved <= ceiling + beyond + 1e-9


def test_the_ceiling_holds_among_threads() -> None:
    ledger = Ledger(10.0)

    def campaign(worker: int) -> float:
        random, spent = Random(worker), 0.0
        for i in range(200):
            worst = random.randint(1, 100) / 100
            if ledger.reserve((worker, i), worst):
                cost = random.randint(0, int(worst * 100)) / 100
                ledger.settle((worker, i), cost)
                spent += cost
        return spent

    with ThreadPoolExecutor(8) as pool:
        spent = sum(pool.map(campaign, range(8)))
    assert ledger.spent == pytest.approx(spent)
    assert ledger.spent <= 10
    assert (ledger.in_flight, ledger.reserved) == (0, 0)


def test_more_is_set_aside_for_a_trial_as_long_as_it_is_left() -> None:
    ledger = Ledger(3.0)
    ledger.reserve("a", 1.0)
    ledger.reserve("b", 1.0)
    assert ledger.raise_to("a", 2.0)
    assert not ledger.raise_to("b", 1.5)
    assert ledger.raise_to("b", 0.5), "less than what is set aside is no change"
    assert (ledger.reserved, ledger.remaining) == (3.0, 0.0)
    ledger.settle("a", 0.5)
    assert ledger.raise_to("b", 2.5)
    with pytest.raises(ValueError, match="has no reservation"):
        ledger.raise_to("a", 1.0)
