"""What the end of a check says of the grader."""

from __future__ import annotations

import pytest

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.report.probe import probe_lines


def outcome(passed: bool | None = None, kind: Kind = Kind.SCORED) -> Outcome:
    row = {"failure_class": "grader_error"} if kind is Kind.FAILED else {"grade": {}} if kind is Kind.SCORED else None
    return Outcome(key=("a", 0), label="a rep0", file_stem="a_rep0", kind=kind, row=row, passed=passed)


FAILED, SKIPPED = outcome(kind=Kind.FAILED), outcome(kind=Kind.SKIPPED)
SILENT = "1 grade without a verdict: give a bool, a metric 'pass', or Grade.passed"


@pytest.mark.parametrize(
    ("lane", "outcomes", "lines"),
    [
        ("null", [outcome(False)], ["the grader fails the empty answer in all 1 execution with a verdict"]),
        ("oracle", [outcome(True)] * 2, ["the grader passes the expected answer in all 2 executions with a verdict"]),
        ("null", [outcome(True), outcome(False)], ["the grader passed the empty answer in 1 of 2: e0"]),
        ("oracle", [outcome(True), outcome(False)], ["the grader failed the expected answer in 1 of 2: e1"]),
        (
            "null",
            [outcome(False), outcome(None), FAILED, SKIPPED, None],
            [
                "the grader fails the empty answer in all 1 execution with a verdict",
                SILENT,
                "1 execution could not be graded: e2",
            ],
        ),
        (
            "oracle",
            [outcome(None)],
            [
                "nothing is known of the grader: no grade of the expected answer has a verdict, so the check fails",
                SILENT,
            ],
        ),
        (
            "oracle",
            [SKIPPED],
            ["nothing is known of the grader: no grade of the expected answer has a verdict, so the check fails"],
        ),
        (
            "null",
            [None],
            ["nothing is known of the grader: no grade of the empty answer has a verdict, so the check fails"],
        ),
        (
            "null",
            [],
            ["nothing is known of the grader: no grade of the empty answer has a verdict, so the check fails"],
        ),
    ],
)
def test_lines(lane: str, outcomes: list[Outcome | None], lines: list[str]) -> None:
    found = probe_lines(lane, ((f"e{n}", each) for n, each in enumerate(outcomes)))
    assert found == [f"{lane:<10} {line}" for line in lines]


def test_names_are_few_and_safe() -> None:
    [line] = probe_lines("null", [(f"e{n}\x1b[2J\n", outcome(True)) for n in range(12)])
    assert "in 12 of 12: e0" in line
    assert line.endswith(" and 2 more")
    assert line.isprintable()
