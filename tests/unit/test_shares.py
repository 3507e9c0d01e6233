"""Shares of a ceiling among workers: what they come to, whoever dies."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hillclimb.wiring.shares import Shares, planned_workers

CEILING = 12.0


def test_a_ceiling_is_divided_evenly() -> None:
    shares = Shares(CEILING, 3)
    assert [shares.give(name) for name in ("gw0", "gw1", "gw2")] == [4.0] * 3


def test_the_place_of_a_lost_worker_has_what_is_left_of_its_share() -> None:
    shares = Shares(CEILING, 2)
    shares.give("gw0")
    shares.give("gw1")
    shares.charge("gw0", 2.5)
    shares.lose("gw0")
    shares.charge("gw0", 1.5)  # what it died over
    shares.lose("gw0")
    assert shares.give("gw2") == 2.0


def test_nothing_left_is_still_above_0() -> None:
    shares = Shares(CEILING, 1)
    shares.give("gw0")
    shares.charge("gw0", 20)
    shares.lose("gw0")
    assert 0 < shares.give("gw1") < 1e-6


def test_a_worker_without_money_makes_room_as_long_as_others_have_some() -> None:
    shares = Shares(CEILING, 3)
    for name in ("gw0", "gw1", "gw2"):
        shares.give(name)
    assert shares.used_up("gw0")
    shares.lose("gw1")
    assert not shares.used_up("gw2"), "the last one tells of what is not run"
    shares.give("gw3")
    assert shares.used_up("gw2")


def test_spend_of_strangers_is_of_no_account() -> None:
    shares = Shares(CEILING, 1)
    shares.charge("gw7", 5)
    shares.lose("gw7")
    assert shares.give("gw0") == CEILING


STEPS = st.lists(
    st.tuples(st.sampled_from(["spend", "die", "die over"]), st.integers(0, 3), st.integers(0, 4)), max_size=30
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(workers=st.integers(1, 4), steps=STEPS)
def test_shares_never_come_to_more_than_is_left_of_the_ceiling(workers: int, steps: list[tuple[str, int, int]]) -> None:
    """Each worker spends no more than its share; one that dies is replaced, as pytest-xdist does."""
    shares = Shares(CEILING, workers)
    left = {f"gw{i}": shares.give(f"gw{i}") for i in range(workers)}
    spent = 0.0
    for number, (step, chosen, cost) in enumerate(steps):
        name = sorted(left)[chosen % workers]
        if step == "spend" and cost <= left[name]:
            shares.charge(name, cost)
            left[name] -= cost
            spent += cost
        elif step != "spend":
            shares.lose(name)
            if step == "die over" and cost <= left[name]:
                shares.charge(name, cost)
                spent += cost
            del left[name]
            left[f"gw{workers + number}"] = shares.give(f"gw{workers + number}")
        assert spent + sum(left.values()) == pytest.approx(CEILING, abs=1e-6)


@pytest.mark.parametrize(
    ("tx", "workers"),
    [
        (None, 1),
        ([], 1),
        (["popen"], 1),
        (["popen", "popen"], 2),
        (["3*popen", "ssh=host//python=python3"], 4),
        (["*popen"], 1),
        (["ssh=a*b"], 1),
    ],
)
def test_workers_are_counted_as_xdist_is_asked_for_them(tx: list[str] | None, workers: int) -> None:
    assert planned_workers(SimpleNamespace(tx=tx)) == workers


def test_there_is_one_process_without_xdist() -> None:
    assert planned_workers(SimpleNamespace()) == 1
