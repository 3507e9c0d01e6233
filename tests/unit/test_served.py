"""The served-model rule: every pair of the contract's table."""

from __future__ import annotations

import pytest

from pytest_hillclimb.engine.served import is_served

ACCEPTED = {
    "foo": ["foo", "foo-20250101", "foo@20250101", "foo-2025-01-01", "foo@2025-01-01"],
    "foo-latest": ["foo-latest", "foo-20250101", "foo@20250101", "foo-2025-01-01"],
    "foo-0": ["foo-0", "foo-20250101"],
    "foo-20250101": ["foo-20250101", "foo-20250101-20250202"],
    "foo-10": ["foo-10", "foo-10-20250101"],
    "claude-haiku-4-5": ["claude-haiku-4-5-20251001", "claude-haiku-4-5@20251001"],
    "claude-3-7-sonnet-latest": ["claude-3-7-sonnet-20250219"],
    "claude-opus-4-0": ["claude-opus-4-20250514"],
}
REFUSED = {
    "foo": [
        "foo-latest",
        "foo-0",
        "foo-2025",
        "foo-2025010",
        "foo-202501011",
        "foo_20250101",
        "foo20250101",
        "foobar-20250101",
        "foo-20250101-1",
        "foo-20250101\n",
        "foo\n",
        "foo-\uff12\uff10\uff12\uff15\uff10\uff11\uff10\uff11",
        "foo-2025-1-1",
        "foo-2025-0101",
        "Foo",
        "vendor/foo",
        "foo ",
    ],
    "foo-latest": ["foo", "foo-latest-20250101", "foo-latest-latest"],
    "foo-0": ["foo", "foo-0-20250101"],
    "foo-latest-0": ["foo-20250101"],
    "foo-20250101": ["foo-20250202", "foo"],
    "foo-10": ["foo-1-20250101", "foo-20250101"],
    "f.o": ["fxo-20250101"],
    "claude-haiku-4-5-20251001": ["claude-haiku-4-5-20260101", "claude-haiku-4-5"],
    "claude-opus-4": ["claude-opus-4-1-20250805"],
    "claude-opus-4-1": ["claude-sonnet-4-5-20250929"],
    "claude-3-7-sonnet-latest": ["claude-3-7-sonnet"],
}


@pytest.mark.parametrize(("requested", "served"), [(r, s) for r, names in ACCEPTED.items() for s in names])
def test_the_model_itself_and_its_dated_snapshots_are_accepted(requested: str, served: str) -> None:
    assert is_served(requested, served)


@pytest.mark.parametrize(("requested", "served"), [(r, s) for r, names in REFUSED.items() for s in names])
def test_every_other_model_is_refused(requested: str, served: str) -> None:
    assert not is_served(requested, served)


@pytest.mark.parametrize(
    ("requested", "served"), [(None, "foo"), ("", "foo"), ("foo", None), ("foo", ""), (None, None)]
)
def test_without_a_request_or_a_named_model_there_is_nothing_to_check(
    requested: str | None, served: str | None
) -> None:
    assert is_served(requested, served)
