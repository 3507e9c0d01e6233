"""Counting a run: outcomes by kind, spend of all tries, the progress line and the table at the end."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.report.summary import metric_lines, outcome_lines, spend_lines
from pytest_hillclimb.report.tally import Tally
from pytest_hillclimb.stats.means import Mean, means


def outcome(kind: Kind, row: dict[str, Any] | None = None, passed: bool | None = None) -> Outcome:
    return Outcome(key=("a", 0), label="a rep0", file_stem="a_rep0", kind=kind, row=row, passed=passed)


def scored(passed: bool | None = None, **row: Any) -> Outcome:
    return outcome(Kind.SCORED, {"prompt_id": "a", "rep": 0, "status": "ok", "grade": {"s": 1}, **row}, passed)


def failed(failure_class: str = "timeout", **row: Any) -> Outcome:
    row = {"failure_class": failure_class, "error": "x", "retries": 0, "judge_retries": 0, **row}
    return outcome(Kind.FAILED, {"prompt_id": "a", "rep": 0, **row})


def tally_of(*outcomes: Outcome) -> Tally:
    tally = Tally(to_run=len(outcomes))
    for each in outcomes:
        tally.add(each)
    return tally


def test_outcomes_are_counted_by_how_they_ended() -> None:
    ends = [scored(True), scored(True), scored(False), scored(None), failed(), failed("rate_limited"), failed()]
    tally = tally_of(*ends, outcome(Kind.SKIPPED), outcome(Kind.XFAILED))
    assert (tally.scored, tally.passed, tally.missed, tally.failed, tally.skipped) == (4, 2, 1, 3, 2)
    assert tally.errors == {"timeout": 2, "rate_limited": 1}
    assert tally.done == 7


def test_only_scored_rows_enter_the_means() -> None:
    tally = tally_of(scored(grade={"s": 0.5}), scored(status="truncated", grade={"s": 0}), failed())
    assert means(tally.scores) == {"s": Mean(0.5, 1, 1)}


def test_tokens_and_retries_of_all_tries_are_counted_once() -> None:
    tally = tally_of(
        scored(
            model="m",
            usage={"input_tokens": 10, "output_tokens": 1, "service_tier": "standard"},
            judge_usage={"output_tokens": 5},
            meta={"retries": 2, "judge_retries": 1, "retry_usage": [{"input_tokens": 3, "model": "m"}]},
        ),
        failed(retries=4, usage={"input_tokens": 100}, retry_usage=[{"input_tokens": 7}, {"input_tokens": 7}]),
        failed(
            judge_retries=1, judge_usage={"output_tokens": 2}, retry_usage=[{"output_tokens": 2, "judge_model": "j"}]
        ),
    )
    assert tally.tokens == {"input_tokens": 127, "output_tokens": 1}
    assert tally.judge_tokens == {"output_tokens": 9}
    assert (tally.retries, tally.judge_retries) == (6, 2)
    assert tally.models == {"m": 1}


def test_spend_of_a_skipped_execution_is_counted_too() -> None:
    tally = tally_of(outcome(Kind.SKIPPED, {"failure_class": "error", "error": "x", "usage": {"input_tokens": 4}}))
    assert (tally.skipped, tally.failed, tally.tokens) == (1, 0, {"input_tokens": 4})


@pytest.mark.parametrize(
    "usage", [None, 5, "many", [1], {"input_tokens": "3"}, {"input_tokens": None}, {"input_tokens": True}]
)
def test_usage_of_another_shape_counts_as_none(usage: object) -> None:
    assert tally_of(scored(usage=usage, judge_usage=usage)).tokens == {}


@pytest.mark.parametrize(
    "theirs",
    [
        {"meta": ["mine"]},
        {"meta": 5},
        {"meta": {"retries": "two allowed", "retry_usage": "none"}},
        {"retries": "two"},
        {"retries": None},
        {"judge_retries": [1]},
        {"retry_usage": 3},
        {"retry_usage": ["x"]},
        {"status": ["odd"]},
        {"model": {"name": "m"}},
    ],
)
def test_rows_whose_keys_hold_what_perf_or_the_catalog_put_there_are_counted(theirs: dict[str, Any]) -> None:
    tally = tally_of(scored(True, **theirs))
    assert tally.scored == 1
    assert (tally.retries, tally.judge_retries) == (0, 0)


@pytest.mark.parametrize(
    ("to_run", "ends", "elapsed", "line"),
    [
        (8, [], 3.0, "[v2] 0/8 done (0 ok, 0 failed), 3s elapsed"),
        (4, [scored(False), failed()], 10.0, "[v2] 2/4 done (1 ok, 1 failed), 10s elapsed, ~10s left"),
        (3, [scored()], 1.2, "[v2] 1/3 done (1 ok, 0 failed), 1s elapsed, ~2s left"),
        (1, [scored()], 90.0, "[v2] 1/1 done (1 ok, 0 failed), 90s elapsed, ~0s left"),
        (2, [scored()], 2.5, "[v2] 1/2 done (1 ok, 0 failed), 3s elapsed, ~3s left"),
    ],
)
def test_the_progress_line_is_that_of_the_public_format(
    to_run: int, ends: list[Outcome], elapsed: float, line: str
) -> None:
    tally = tally_of(*ends)
    tally.to_run = to_run
    assert tally.progress_line("v2", elapsed) == line


@pytest.mark.parametrize(("fail_on", "word"), [("grade", "failed"), ("error", "missed")])
def test_a_miss_is_called_by_what_it_does_to_its_item(fail_on: str, word: str) -> None:
    lines = outcome_lines(tally_of(scored(True), scored(False)), recorded=[], untried=0, fail_on=fail_on)
    assert lines == [f"scored     2  (1 passed, 1 {word})"]


def test_the_table_counts_all_ends_and_leaves_out_what_did_not_occur() -> None:
    tally = tally_of(scored(True), scored(None), failed(), failed("a\nb"), failed(), outcome(Kind.SKIPPED))
    assert outcome_lines(tally, recorded=[True, False, None], untried=2, fail_on="grade") == [
        "scored     2  (1 passed, 0 failed, 1 without a verdict)",
        "errors     3  (timeout 2, a b 1)",
        "skipped    1",
        "recorded   3  (1 passed, 1 failed, 1 without a verdict)",
        "not tried  2",
    ]


def test_means_are_shown_with_what_they_rest_on() -> None:
    assert metric_lines({"pass": Mean(0.6789, 19, 38), "a\x1b[2J": Mean(2, 1, 1)}) == [
        "pass       mean 0.679  n=19 cases, 38 rows",
        "a          mean 2.000  n=1 case, 1 row",
    ]
    assert metric_lines({}) == []


def test_spend_is_shown_only_where_there_was_any() -> None:
    assert spend_lines(tally_of(scored()), 0) == []
    tally = tally_of(
        scored(usage={"input_tokens": 1200, "output_tokens": 34}, judge_usage={"cache_read_input_tokens": 5}),
        failed(retries=4),
    )
    assert spend_lines(tally, 2) == [
        "tokens     1,200 in, 34 out",
        "judge      5 cache read",
        "retries    4 app, 0 judge",
        "abandoned  2 calls did not end with the trial, and may still cost money",
    ]
