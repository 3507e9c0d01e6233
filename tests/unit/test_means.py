"""Means the report builder's way: per case over its ok rows, then over cases."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pytest_hillclimb.stats.means import Mean, means

Score = tuple[str, str | None, Mapping[str, float]]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([], {}),
        ([("a", "ok", {"s": 1})], {"s": Mean(1, 1, 1)}),
        (
            [
                ("a", "ok", {"s": 1}),
                ("a", "ok", {"s": 0}),
                ("a", "ok", {"s": 0}),
                ("a", "ok", {"s": 0}),
                ("b", "ok", {"s": 1}),
            ],
            {"s": Mean(0.625, 2, 5)},
        ),
        ([("a", None, {"s": 1}), ("b", "ok", {"s": 0})], {"s": Mean(0.5, 2, 2)}),
        ([("a", "truncated", {"s": 0}), ("a", "ok", {"s": 1}), ("b", "odd", {"s": 0})], {"s": Mean(1, 1, 1)}),
        ([("a", "truncated", {"s": 0})], {}),
        (
            [("a", "ok", {"s": 1, "t": 0.5}), ("a", "ok", {"s": 0}), ("b", "ok", {"t": 1})],
            {"s": Mean(0.5, 1, 2), "t": Mean(0.75, 2, 2)},
        ),
        ([("a", "ok", {"s": -2}), ("b", "ok", {"s": 7.5})], {"s": Mean(2.75, 2, 2)}),
    ],
    ids=[
        "nothing",
        "one",
        "cases-weigh-the-same-whatever-their-rows",
        "absent-status-is-ok",
        "other-statuses-stay-out",
        "none-left",
        "a-metric-may-be-missing-from-rows",
        "any-range",
    ],
)
def test_means_say_on_how_many_cases_and_rows_they_rest(scores: list[Score], expected: dict[str, Mean]) -> None:
    assert means(scores) == expected


def test_metrics_keep_the_order_in_which_they_were_first_seen() -> None:
    assert list(means([("a", "ok", {"z": 1, "a": 1}), ("b", "ok", {"m": 1, "a": 1})])) == ["z", "a", "m"]
