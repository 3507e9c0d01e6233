"""An outcome that is delivered twice counts once; one that conflicts with what was taken is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.flow.deliveries import Deliveries, Delivery


def outcome(what: str, case: str = "a") -> Outcome:
    """Return ``scored``, a failure of the class that is named, or ``skipped``."""
    kind = Kind(what) if what in ("scored", "skipped") else Kind.FAILED
    row: dict[str, Any] | None = {"prompt_id": case, "rep": 0}
    if kind is Kind.FAILED:
        row = {**(row or {}), "failure_class": what}
    elif kind is Kind.SKIPPED:
        row = None
    return Outcome(key=(case, 0), label=f"{case} rep0", file_stem=f"{case}_rep0", kind=kind, row=row)


def take(deliveries: Deliveries, given: Outcome) -> Delivery:
    return deliveries.take(given, b"" if given.row is None else json.dumps(given.row).encode())


@pytest.mark.parametrize("what", ["scored", "error", "worker_lost", "skipped"])
def test_same_content_is_a_repetition(what: str) -> None:
    deliveries = Deliveries()
    assert take(deliveries, outcome(what)) is Delivery.NEW
    assert [take(deliveries, outcome(what)) for _ in range(2)] == [Delivery.REPEATED] * 2
    assert take(deliveries, outcome(what, "b")) is Delivery.NEW
    assert (deliveries.repeated, deliveries.conflicting) == (2, 0)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("error", "scored"),
        ("worker_lost", "scored"),
        ("worker_lost", "timeout"),
        ("skipped", "scored"),
    ],
)
def test_what_may_follow(first: str, then: str) -> None:
    deliveries = Deliveries()
    assert take(deliveries, outcome(first)) is Delivery.NEW
    assert take(deliveries, outcome(then)) is Delivery.NEW
    assert take(deliveries, outcome(first)) is Delivery.REPEATED


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("scored", "error"),
        ("scored", "worker_lost"),
        ("error", "timeout"),
        ("error", "worker_lost"),
        ("timeout", "skipped"),
    ],
)
def test_what_conflicts(first: str, then: str) -> None:
    deliveries = Deliveries()
    take(deliveries, outcome(first))
    assert take(deliveries, outcome(then)) is Delivery.CONFLICTING
    assert take(deliveries, outcome(first)) is Delivery.REPEATED
    assert (deliveries.repeated, deliveries.conflicting) == (1, 1)


def test_another_score_conflicts() -> None:
    deliveries = Deliveries()
    deliveries.take(outcome("scored"), b"1")
    assert deliveries.take(outcome("scored"), b"2") is Delivery.CONFLICTING


def test_row_that_was_amended_is_the_same_delivery() -> None:
    deliveries = Deliveries()
    deliveries.take(outcome("scored"), b"1")
    deliveries.amend(outcome("scored"), b"1 with a note")
    assert deliveries.take(outcome("scored"), b"1 with a note") is Delivery.REPEATED
    assert deliveries.take(outcome("scored"), b"1") is Delivery.REPEATED
