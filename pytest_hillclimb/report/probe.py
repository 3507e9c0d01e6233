"""What a check of the grader has shown: whether it fails an empty answer, or passes the expected ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_hillclimb.engine.outcome import Outcome
from pytest_hillclimb.model.settings import NULL
from pytest_hillclimb.report.terminal import one_line, plural

_LISTED = 10


def probe_lines(lane: str, outcomes: Iterable[tuple[str, Outcome | None]]) -> list[str]:
    """Return the verdict on the grader.

    :param lane: null or oracle
    :param outcomes: name and outcome of each execution
    """
    graded = [(name, outcome) for name, outcome in outcomes if outcome is not None and outcome.row is not None]
    wrong = [name for name, outcome in graded if outcome.passed is (lane == NULL)]
    right = [name for name, outcome in graded if outcome.passed is (lane != NULL)]
    failed = [name for name, outcome in graded if outcome.failure_class is not None]
    silent = len(graded) - len(wrong) - len(right) - len(failed)
    does, does_not = ("fails", "passed") if lane == NULL else ("passes", "failed")
    answers = "the empty answer" if lane == NULL else "the expected answer"
    lines = []
    if wrong:
        lines.append(f"the grader {does_not} {answers} in {len(wrong)} of {len(graded)}: {_named(wrong)}")
    elif right:
        lines.append(f"the grader {does} {answers} in all {plural(len(right), 'execution')} with a verdict")
    if silent:
        lines.append(f"{plural(silent, 'grade')} without a verdict: give a bool, a metric 'pass', or Grade.passed")
    if failed:
        lines.append(f"{plural(len(failed), 'execution')} could not be graded: {_named(failed)}")
    if not graded:
        lines.append(f"nothing was graded with {answers}")
    return [f"{lane:<10} {line}" for line in lines]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(one_line(name, 80) for name in names[:_LISTED]) + more
