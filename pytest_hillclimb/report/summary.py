"""The table at the end of a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_hillclimb.model.prices import RowCost
from pytest_hillclimb.model.rows import Row
from pytest_hillclimb.model.settings import MAIN, NULL, PROBES
from pytest_hillclimb.report.detail import missed_gist, over_budget
from pytest_hillclimb.report.money import dollars, gaps
from pytest_hillclimb.report.tally import Tally
from pytest_hillclimb.report.terminal import one_line, plural
from pytest_hillclimb.stats.means import Mean
from pytest_hillclimb.stats.spend import Spend

_LISTED = 20
_DEAREST = 3
_CASES = 50
_TOKENS = (
    ("input_tokens", "in"),
    ("output_tokens", "out"),
    ("cache_read_input_tokens", "cache read"),
    ("cache_creation_input_tokens", "cache written"),
)


def outcome_lines(
    tally: Tally, *, recorded: Sequence[bool | None], untried: int, fail_on: str, skipped: int = 0, lane: str = MAIN
) -> list[str]:
    """Return the lines that count how executions ended.

    :param recorded: the verdicts of the items whose row was on disk before
    :param untried: planned executions that have no outcome
    :param skipped: executions that pytest skipped by a mark or in a fixture
    :param fail_on: what turns an item red, which decides how a miss is called
    :param lane: in the checks of a grader, a pass or a miss is what must be
    """
    missed = "missed" if fail_on == "error" else "failed"
    lines = [f"scored     {tally.scored}{_verdicts(tally.passed, tally.missed, tally.scored, missed)}"]
    if lane in PROBES:
        lines = [f"graded     {tally.scored}{_as_they_must(tally, lane)}"]
    if tally.failed:
        found = sorted(tally.errors.items(), key=lambda each: (-each[1], each[0]))
        classes = ", ".join(f"{one_line(name)} {count}" for name, count in found)
        lines.append(f"errors     {tally.failed}  ({classes})")
    if tally.skipped + skipped:
        lines.append(f"skipped    {tally.skipped + skipped}")
    if recorded:
        verdicts = _verdicts(recorded.count(True), recorded.count(False), len(recorded), missed)
        lines.append(f"recorded   {len(recorded)}{verdicts}")
    if untried:
        lines.append(f"not tried  {untried}")
    return lines


def missed_lines(missed: Iterable[tuple[str, Row | None]]) -> list[str]:
    """Return one line for each execution that missed without turning red: its node id and why."""
    found = [(nodeid, row or {}) for nodeid, row in missed]
    lines = [f"missed     {nodeid} - {missed_gist(row, over_budget(row))}" for nodeid, row in found]
    return [*lines[:_LISTED], *([f"missed     ... and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else [])]


def warning_lines(warnings: Sequence[str]) -> list[str]:
    """Return the warnings of the run, the first ones in full."""
    lines = [f"warning    {one_line(warning, 300)}" for warning in warnings[:_LISTED]]
    return [*lines, *([f"warning    ... and {len(warnings) - _LISTED} more"] if len(warnings) > _LISTED else [])]


def metric_lines(metrics: Mapping[str, Mean], of: str = "case") -> list[str]:
    """Return one line for each metric: its mean over cases, and what that rests on.

    :param of: what a mean is taken over: cases, or pairs of a case and a candidate
    """
    if not metrics:
        return []
    width = max(10, *(len(one_line(name, 40)) for name in metrics))
    return [
        f"{one_line(name, 40):<{width}} mean {mean.value:.3f}  n={_basis(mean, of)}" for name, mean in metrics.items()
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
        lines.append(f"abandoned  {plural(abandoned, 'call')} did not end with the trial, and may still cost money")
    return lines


def cost_lines(cost: RowCost, *, ceiling: float | None, charged: float, withheld: int) -> list[str]:
    """Return the lines on money, in US dollars; none where no usage was reported.

    :param ceiling: the campaign's ceiling, None for none
    :param charged: what the ceiling was charged with
    :param withheld: executions that it kept from being started
    """
    lines = []
    parts = [
        f"{dollars(usd)} USD {name}" for name, usd in (("app", cost.app), ("judge", cost.judge)) if usd is not None
    ]
    if not parts and not cost.unpriced and cost.unknown:
        parts.append("not known: no usage was reported")
    else:
        parts += gaps(cost)
    if parts:
        lines.append(f"cost       {', '.join(parts)}")
    if ceiling is not None:
        left_out = f"; it kept {plural(withheld, 'execution')} from being run" if withheld else ""
        lines.append(f"ceiling    {dollars(charged)} of {ceiling:g} USD charged{left_out}")
    return lines


def variant_cost_lines(spend: Spend) -> list[str]:
    """Return the line on what a variant has cost since its first session, and which cases cost most."""
    total = spend.total
    if total.total is None:
        return []
    left_out = "".join(f", {gap}" for gap in gaps(total))
    dearest = ", ".join(f"{one_line(case, 40)} {dollars(usd)}" for case, usd in spend.dearest(_DEAREST))
    most = f"; most for {dearest}" if len(spend.by_case) > 1 else ""
    return [f"in all     {dollars(total.total)} USD since the variant began{left_out}{most}"]


def case_cost_lines(spend: Spend) -> list[str]:
    """Return one line for each case: what it has cost, app and judge apart; the dearest first."""
    costs = sorted(spend.by_case.items(), key=lambda each: -(each[1].total or 0.0))
    lines = [f"{one_line(case, 40)}: {_case_cost(cost)}" for case, cost in costs[:_CASES]]
    if len(costs) > _CASES:
        lines.append(f"... and {len(costs) - _CASES} more")
    return [f"per case   {line}" for line in lines]


def _case_cost(cost: RowCost) -> str:
    parts = [
        f"{dollars(usd)} USD {name}" for name, usd in (("app", cost.app), ("judge", cost.judge)) if usd is not None
    ]
    return ", ".join([*parts, *gaps(cost)]) or "no usage"


def _basis(mean: Mean, of: str) -> str:
    return f"{plural(mean.cases, of)}, {plural(mean.rows, 'row')}"


def _as_they_must(tally: Tally, lane: str) -> str:
    due, wrong = (tally.missed, tally.passed) if lane == NULL else (tally.passed, tally.missed)
    does, did_not = ("failed", "passed") if lane == NULL else ("passed", "failed")
    counts = ((due, f"{does} as they must"), (wrong, did_not), (tally.scored - due - wrong, "without a verdict"))
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    return f"  ({told})" if told else ""


def _verdicts(passed: int, missed: int, total: int, missed_word: str) -> str:
    if not total:
        return ""
    ungraded = total - passed - missed
    return f"  ({passed} passed, {missed} {missed_word}{f', {ungraded} without a verdict' if ungraded else ''})"


def _tokens(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]:,} {label}" for name, label in _TOKENS if counts.get(name)) or "0"
