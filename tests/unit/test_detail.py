"""The details of an item: what is shown of a miss and of an execution that could not be measured, all of it safe."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_hillclimb.model.case import Case
from pytest_hillclimb.report.detail import headline, missed, missed_gist, unmeasured

CASE = Case(id="c1", prompt="When are you\nopen?", expected={"hours": "10 to 16"})
FORGERY = "x\n=== 9 passed in 0.01s ===\r\x1b[1APASSED\u202e"


def row(**more: Any) -> dict[str, Any]:
    return {"prompt_id": "c1", "rep": 0, "prompt": "When are you\nopen?", "status": "ok", "grade": {"pass": 0}, **more}


def failure(**more: Any) -> dict[str, Any]:
    return {"failure_class": "timeout", "error": "c1 rep0: exceeded 3s", "retries": 0, "judge_retries": 0, **more}


def told(lines: list[str]) -> list[str]:
    """Return the lines without their alignment, which must be the same for all lines with a margin."""
    assert len({line.index("|") for line in lines if "|" in line}) == 1
    return [re.sub(" {2,}", " ", line.strip()) for line in lines]


def test_a_miss_shows_prompt_output_expected_grades_explanations_and_trace() -> None:
    graded = row(grade={"pass": 0, "f1": 0.333333}, explanation={"f1": "two of\nthree"})
    assert told(missed(CASE, graded, "On Sundays.", "flow/traces/c1_rep0.json")) == [
        "prompt | When are you",
        "| open?",
        "output | On Sundays.",
        'expected | {"hours":"10 to 16"}',
        "pass | 0",
        "f1 | 0.3333 two of",
        "| three",
        "trace flow/traces/c1_rep0.json",
    ]


def test_what_is_not_known_is_not_shown() -> None:
    assert told(missed(Case(id="c1"), row(prompt="hi"), None, None)) == ["prompt | hi", "pass | 0"]


def test_a_truncated_answer_says_so() -> None:
    assert "status | truncated" in told(missed(CASE, row(status="truncated"), "On Sun", None))


def test_a_recorded_row_with_a_bare_grade_is_shown_as_score() -> None:
    assert "score | 0.25" in told(missed(CASE, row(grade=0.25), None, None))


def test_an_unmeasured_execution_shows_class_error_place_type_prompt_and_rows() -> None:
    failed = failure(error_type="ReadTimeout", retries=4, judge_retries=1)
    assert told(unmeasured(CASE, failed, ["app.py:7 in ask", "client.py:9 in post"], "flow/errors.jsonl")) == [
        "timeout | c1 rep0: exceeded 3s",
        "at | app.py:7 in ask",
        "at | client.py:9 in post",
        "type | ReadTimeout",
        "prompt | When are you",
        "| open?",
        "retries | 4 app, 1 judge",
        "recorded flow/errors.jsonl",
    ]


def test_an_unmeasured_execution_without_retries_mentions_none() -> None:
    assert not any("retries" in line for line in unmeasured(CASE, failure(), [], "errors.jsonl"))


@pytest.mark.parametrize(
    "lines",
    [
        missed(
            Case(id="c1", expected=FORGERY),
            row(prompt=FORGERY, grade={FORGERY: 0}, explanation={FORGERY: FORGERY}, status=FORGERY),
            FORGERY,
            FORGERY,
        ),
        unmeasured(
            Case(id="c1", prompt=FORGERY),
            failure(failure_class=FORGERY, error=FORGERY, error_type=FORGERY),
            [FORGERY],
            FORGERY,
        ),
        [
            f"  | {missed_gist(row(grade={FORGERY: FORGERY}))}",
            f"  | {headline(failure(failure_class=FORGERY, error=FORGERY))}",
        ],
    ],
    ids=["missed", "unmeasured", "one-line"],
)
def test_nothing_from_the_data_steers_the_terminal_or_starts_a_line(lines: list[str]) -> None:
    assert lines
    for line in lines:
        assert line.isprintable()
        assert line.startswith("  ")
        assert "\u202e" not in line
        assert not line.strip().startswith("===")


@pytest.mark.parametrize(
    ("grade", "text"),
    [
        ({"pass": 0, "tone": 0.123456}, "pass 0, tone 0.1235"),
        (0.5, "score 0.5"),
    ],
)
def test_the_gist_of_a_miss(grade: object, text: str) -> None:
    assert missed_gist(row(grade=grade)) == text
    assert missed_gist(row(grade=grade, explanation={"tone": "too\ncurt"})) == f"{text}: too curt"


@pytest.mark.parametrize(
    ("expected", "shown"),
    [("caf\u00e9", "caf\u00e9"), ({"a": ["\u00e9"]}, '{"a":["\u00e9"]}'), (object(), "<object>"), ([1, {2}], "<list>")],
)
def test_an_expectation_of_any_kind_is_shown(expected: object, shown: str) -> None:
    assert f"expected | {shown}" in told(missed(Case(id="c1", expected=expected), row(), None, None))


def test_the_headline_of_a_failure_is_one_short_line() -> None:
    assert headline(failure()) == "timeout: c1 rep0: exceeded 3s"
    assert len(headline(failure(error="x" * 1000))) == 160
    assert len(missed_gist(row(grade={f"metric-{n}": 0 for n in range(100)}))) == 160
