"""What a check of the grader has shown: whether it fails an empty answer, or passes the expected ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.model.settings import NULL
from pytest_hillclimb.report.terminal import one_line, plural

_LISTED = 10


def probe_lines(lane: str, outcomes: Iterable[tuple[str, Outcome | None]]) -> list[str]:
    """Return the verdict on the grader.

    :param lane: null or oracle
    :param outcomes: name and outcome of each execution
    """
    ended = [(name, outcome) for name, outcome in outcomes if outcome is not None]
    graded = [(name, outcome.passed) for name, outcome in ended if outcome.kind is Kind.SCORED]
    failed = [name for name, outcome in ended if outcome.kind is Kind.FAILED]
    judged = [name for name, passed in graded if passed is not None]
    wrong = [name for name, passed in graded if passed is (lane == NULL)]
    does, did_not = ("fails", "passed") if lane == NULL else ("passes", "failed")
    answer = "the empty answer" if lane == NULL else "the expected answer"
    lines = []
    if wrong:
        lines.append(f"the grader {did_not} {answer} in {len(wrong)} of {len(judged)}: {_named(wrong)}")
    elif judged:
        lines.append(f"the grader {does} {answer} in all {plural(len(judged), 'execution')} with a verdict")
    else:
        lines.append(f"nothing is known of the grader: no grade of {answer} has a verdict, so the check fails")
    if silent := len(graded) - len(judged):
        lines.append(f"{plural(silent, 'grade')} without a verdict: give a bool, a metric 'pass', or Grade.passed")
    if failed:
        lines.append(f"{plural(len(failed), 'execution')} could not be graded: {_named(failed)}")
    return [f"{lane:<10} {line}" for line in lines]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(one_line(name, 80) for name in names[:_LISTED]) + more
