"""The table at the end of a session, of what the session's owner has gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from pytest_hillclimb.engine.outcome import SKIPPED
from pytest_hillclimb.flow.recorded import Score
from pytest_hillclimb.model.prices import RowCost
from pytest_hillclimb.model.settings import PROBES
from pytest_hillclimb.report.candidates import candidate_lines
from pytest_hillclimb.report.probe import probe_lines
from pytest_hillclimb.report.summary import (
    case_cost_lines,
    cost_lines,
    metric_lines,
    missed_lines,
    outcome_lines,
    spend_lines,
    variant_cost_lines,
    warning_lines,
)
from pytest_hillclimb.report.terminal import one_line
from pytest_hillclimb.stats.means import Mean, means
from pytest_hillclimb.wiring.collect import LOADED
from pytest_hillclimb.wiring.conductor import Conductor
from pytest_hillclimb.wiring.controller import Controller
from pytest_hillclimb.wiring.run import EvalRun
from pytest_hillclimb.wiring.scope import shown_path, typed_id


def table_lines(owner: Conductor | Controller, config: pytest.Config) -> list[str]:
    """Return the lines of the table."""
    run, log, tally = owner.evals, owner.log, owner.evals.tally
    untried = log.untried
    lines = outcome_lines(
        tally,
        recorded=log.earlier,
        skipped=log.skipped,
        untried=len(untried),
        fail_on=run.settings.fail_on,
        lane=run.settings.lane,
    )
    if run.settings.lane in PROBES:
        lines += probe_lines(run.settings.lane, [(e.execution.label, e.outcome) for e in log.entries])
    of = "case" if run.campaign.manifest is None else "pair"
    lines += metric_lines(means(_scores(owner, config)), of)
    if run.campaign.manifest is not None and run.settings.lane not in PROBES:
        lines += candidate_lines(*_by_candidate(owner, config))
    lines += spend_lines(tally, owner.abandoned)
    lines += _money_lines(run, config)
    if run.settings.fail_on == "error":
        lines += missed_lines((typed_id(config, e.nodeid), e.outcome.row if e.outcome else None) for e in log.missed)
    if log.earlier and not tally.to_run:
        lines.append("everything selected was recorded before, nothing was run; --hillclimb-fresh runs it again")
    if owner.stop_reason:
        lines.append(f"stopped    {one_line(owner.stop_reason, 300)}")
    if run.rescue:
        lines.append(f"rescued    rows that the disk did not take are in {run.rescue}")
    lines += [f"unsaved    {one_line(row)}" for row in run.unsaved]
    ended = [(e.execution.candidate, e.outcome) for e in log.entries if e.outcome is not None]
    told = [(who, o.row) for who, o in ended if who is not None and o.row is not None and not o.earlier]
    lines += warning_lines([*run.warnings, *run.campaign.budget_warnings(told)])
    results = shown_path(config, run.results_path)
    return [*lines, f"[{run.settings.variant}] done - {tally.scored} ok, {tally.failed} failed -> {results}"]


def _money_lines(run: EvalRun, config: pytest.Config) -> list[str]:
    tally = run.tally
    cost = tally.cost()
    if run.settings.lane in PROBES:
        cost = replace(cost, untold=0, silent=0)  # the app is not called
    lines = cost_lines(cost, ceiling=run.campaign.ceiling, charged=tally.charged, withheld=tally.withheld)
    if (spend := run.spend) is None:
        return lines
    if not run.settings.fresh:  # which begins with nothing
        lines += variant_cost_lines(spend)
    return [*lines, *(case_cost_lines(spend) if config.get_verbosity() >= 1 else ())]


def _by_candidate(
    owner: Conductor | Controller, config: pytest.Config
) -> tuple[list[tuple[str, str]], Mapping[str | None, Sequence[RowCost]], dict[str, dict[str, Mean]]]:
    """Return, for the table of candidates, the class of each selected execution, costs, and means by candidate."""
    run = owner.evals
    tested = {e.prompt_id: e.candidate.id for e in config.stash[LOADED].executions if e.candidate is not None}
    scores: dict[str, list[Score]] = {}
    for score in _scores(owner, config):
        if score.prompt_id in tested:
            scores.setdefault(tested[score.prompt_id], []).append(score)
    classes = [
        (tested[entry.execution.prompt_id], entry.outcome.classification if entry.outcome is not None else SKIPPED)
        for entry in owner.log.entries
        if entry.outcome is not None or entry.skipped
    ]
    order = list(run.campaign.models)  # the author's, whatever the schedule makes of it
    classes.sort(key=lambda each: order.index(each[0]))
    return classes, run.tally.costs, {candidate: means(of) for candidate, of in scores.items()}


def _scores(owner: Conductor | Controller, config: pytest.Config) -> list[Score]:
    """Return the scores of the variant in the order of the plan, in which metrics are then shown; others come last."""
    run, planned = owner.evals, config.stash[LOADED].executions
    places = {execution.prompt_id: execution.order for execution in reversed(planned)}
    scores = [Score._make(each) for each in (*run.recorded.scores, *run.tally.scores)]
    return sorted(scores, key=lambda score: places.get(score.prompt_id, len(planned)))
