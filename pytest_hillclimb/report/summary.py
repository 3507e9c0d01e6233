"""The table at the end of a session."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_hillclimb.report.tally import Tally
from pytest_hillclimb.report.terminal import one_line
from pytest_hillclimb.stats.means import Mean

_TOKENS = (
    ("input_tokens", "in"),
    ("output_tokens", "out"),
    ("cache_read_input_tokens", "cache read"),
    ("cache_creation_input_tokens", "cache written"),
)


def outcome_lines(tally: Tally, *, recorded: int, untried: int, fail_on: str) -> list[str]:
    """Return the lines that count how executions ended.

    :param recorded: items whose row was on disk before
    :param untried: planned executions that were not started
    :param fail_on: what turns an item red, which decides how a miss is called
    """
    missed = "missed" if fail_on == "error" else "failed"
    verdicts = f"{tally.passed} passed, {tally.missed} {missed}"
    ungraded = tally.scored - tally.passed - tally.missed
    lines = [f"scored     {tally.scored}  ({verdicts}{f', {ungraded} without a verdict' if ungraded else ''})"]
    if tally.failed:
        classes = ", ".join(f"{one_line(name)} {count}" for name, count in tally.errors.most_common())
        lines.append(f"errors     {tally.failed}  ({classes})")
    for label, count in (("skipped", tally.skipped), ("recorded", recorded), ("not tried", untried)):
        if count:
            lines.append(f"{label:<10} {count}")
    return lines


def metric_lines(metrics: Mapping[str, Mean]) -> list[str]:
    """Return one line for each metric: its mean over cases, and what that rests on."""
    if not metrics:
        return []
    width = max(10, *(len(one_line(name, 40)) for name in metrics))
    return [
        f"{one_line(name, 40):<{width}} mean {mean.value:.3f}  n={mean.cases} cases, {mean.rows} rows"
        for name, mean in metrics.items()
    ]


def spend_lines(tally: Tally, abandoned: int) -> list[str]:
    """Return the lines on tokens, retries and calls that were left behind; none for what did not occur."""
    lines = [
        f"{label:<10} {_tokens(counts)}"
        for label, counts in (("tokens", tally.tokens), ("judge", tally.judge_tokens))
        if counts
    ]
    if tally.retries or tally.judge_retries:
        lines.append(f"retries    {tally.retries} app, {tally.judge_retries} judge")
    if abandoned:
        lines.append(f"abandoned  {abandoned} calls did not end with their trial; they may still cost money")
    return lines


def _tokens(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]:,} {label}" for name, label in _TOKENS if counts.get(name)) or "0"
