"""Turning an outcome into what pytest understands: passed, failed, error, skipped, with its numbers as properties."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.engine.served import requested_name
from pytest_hillclimb.flow.layout import ERRORS, TRACES
from pytest_hillclimb.model.redaction import Redactor
from pytest_hillclimb.model.settings import MAIN
from pytest_hillclimb.report import detail
from pytest_hillclimb.report.terminal import multiline, one_line
from pytest_hillclimb.wiring.campaign import Campaign
from pytest_hillclimb.wiring.collect import TrialItem
from pytest_hillclimb.wiring.failures import GradeMissed, NotMeasured, TrialFailure

_STREAMS = ("stdout", "stderr", "log")
_NUMBERS = ("latency_s", "cost_usd", "retries", "judge_retries")
_WORDS = ("model", "status", "failure_class", "code")


class Presenter:
    """Reports outcomes through their items."""

    def __init__(self, config: pytest.Config, campaign: Campaign, variant_path: Path) -> None:
        self._config = config
        self._campaign = campaign
        self._variant_path = variant_path

    def present(self, item: TrialItem, outcome: Outcome) -> None:
        """Give the item its properties and sections, and raise what its outcome means to pytest."""
        self._add_properties(item, outcome)
        for stream in _STREAMS:
            if text := outcome.said.get(stream):
                item.add_report_section("call", stream, multiline(text))
        outcome.said = {}
        match outcome.kind:
            case Kind.SKIPPED:
                pytest.skip(one_line(outcome.reason))
            case Kind.XFAILED:
                pytest.xfail(one_line(outcome.reason))
            case Kind.EXIT:
                pytest.exit(one_line(outcome.reason), returncode=outcome.returncode)
            case Kind.FAILED if outcome.row is not None:
                rows = self._shown(self._variant_path / ERRORS)
                case = self._campaign.shown(item.execution.case)
                lines = detail.unmeasured(case, outcome.row, outcome.place, rows)
                raise NotMeasured(detail.headline(outcome.row), lines)
        fail_on = self._campaign.settings.fail_on
        if outcome.is_red(fail_on):
            over = self._over_budget(item, outcome)
            raise GradeMissed(_gist(outcome, fail_on, over), self._missed_lines(item, outcome, over))
        item.missed = outcome.passed is False and fail_on == "error"

    def _over_budget(self, item: TrialItem, outcome: Outcome) -> list[str]:
        candidate, row = item.execution.candidate, outcome.row or {}
        if candidate is None:
            return []
        known_as = requested_name(candidate.model)
        cost = self._campaign.prices.cost(row.get("usage"), row.get("model") or candidate.model, known_as)
        return detail.over_budget(row, candidate.budget, cost)

    def _missed_lines(self, item: TrialItem, outcome: Outcome, over: Sequence[str]) -> list[str]:
        trace = self._variant_path / TRACES / f"{item.execution.file_stem}.json"
        shown = self._shown(trace) if outcome.has_trace else None
        case, output = self._campaign.shown(item.execution.case), self._campaign.redactor.data(outcome.output)
        return detail.missed(case, outcome.row or {}, output, shown, over)

    def _add_properties(self, item: TrialItem, outcome: Outcome) -> None:
        identity = _identity(item, outcome)
        kept = [p for p in item.user_properties if not p[0].startswith("hillclimb.")] + identity
        item.user_properties = [*kept, *_properties(outcome, self._campaign)]

    def _shown(self, path: Path) -> str:
        return os.path.relpath(path, self._config.invocation_params.dir)


def _identity(item: TrialItem, outcome: Outcome) -> list[tuple[str, object]]:
    """Return where the execution stands in the matrix; a recorded one keeps the execution id of its row."""
    recorded = _dict((outcome.row or {}).get("meta")).get("execution_id") if outcome.earlier else None
    return [(n, recorded if n == "hillclimb.execution_id" and recorded else v) for n, v in item.identity]


def _gist(outcome: Outcome, fail_on: str, over: Sequence[str]) -> str:
    problem = "the grader passed an empty answer: " if fail_on == "pass" else "" if over else "grade did not pass: "
    gist = f"{problem}{detail.missed_gist(outcome.row or {}, over)}"
    return f"recorded: {gist}" if outcome.earlier else gist


def _properties(outcome: Outcome, campaign: Campaign) -> list[tuple[str, object]]:
    """Return the numbers of an outcome as plain text and numbers, for JUnit and other readers of reports."""
    row = outcome.row or {}
    found: list[tuple[str, object]] = [("classification", outcome.classification)]
    if outcome.earlier:
        found.append(("recorded", "true"))
    if (lane := campaign.settings.lane) != MAIN:
        found.append(("lane", lane))
    found += [(f"grade.{metric}", value) for metric, value in _dict(row.get("grade")).items()]
    meta = _dict(row.get("meta"))
    found += [(name, row.get(name, meta.get(name))) for name in _NUMBERS]
    cost = campaign.row_cost(row)
    found += [("app_cost_usd", cost.app), ("judge_cost_usd", cost.judge)]
    if over := meta.get("budget_exceeded"):
        found.append(("budget_exceeded", ", ".join(map(str, over))))
    found += [(name, value) for name, value in _dict(row.get("usage")).items() if name.endswith("_tokens")]
    found += [(name, row.get(name)) for name in _WORDS]
    return [
        (f"hillclimb.{one_line(name)}", one_line(value) if isinstance(value, str) else value)
        for name, value in found
        if isinstance(value, (str, int, float))
    ]


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


class Reporting:
    """Shapes pytest's reports of items: E for what was not measured, true durations, ``missed`` as a word, no secrets.

    :param sends_home: whether reports carry outcomes, as a worker's do
    """

    def __init__(self, redactor: Redactor, *, sends_home: bool = False) -> None:
        self._redactor = redactor
        self._sends_home = sends_home

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Shape the report of an execution."""
        report: pytest.TestReport = yield
        if not isinstance(item, TrialItem):
            return report
        self._redact(report)
        if report.when == "call":
            self._shape(report, item, call)
        return report

    def _redact(self, report: pytest.TestReport) -> None:
        """Take the secrets out of what fixtures, and threads that belong to no trial, have said and raised."""
        clean = self._redactor.text
        report.sections = [(name, clean(text)) for name, text in report.sections]
        if report.skipped and isinstance(report.longrepr, tuple):
            path, line, reason = report.longrepr
            report.longrepr = (path, line, clean(reason))
        elif report.failed and (text := clean(report.longreprtext)) != report.longreprtext:
            report.longrepr = text

    def _shape(self, report: pytest.TestReport, item: TrialItem, call: pytest.CallInfo[None]) -> None:
        outcome = item.outcome
        if outcome is not None and outcome.duration:
            report.start, report.duration = outcome.started, outcome.duration
            report.stop = outcome.started + outcome.duration
        if report.skipped and isinstance(report.longrepr, tuple):
            report.longrepr = (str(item.path), item.reportinfo()[1] + 1, report.longrepr[2])
        if report.failed and call.excinfo is not None and isinstance(call.excinfo.value, NotMeasured):
            # What pytest shows as E and JUnit as an error is a failure outside of the call.
            report.when = "setup"
        if report.passed and item.missed:
            report.hillclimb_missed = True  # type: ignore[attr-defined]
        if self._sends_home:
            _load(report, item, call)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Take the secrets out of a warning before anyone shows it."""
        text = str(warning_message.message)
        if (clean := self._redactor.text(text)) != text:
            warning_message.message = UserWarning(clean)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport | pytest.CollectReport) -> Any:
        """Call a miss that is not red by its name."""
        if getattr(report, "hillclimb_missed", False) and report.when == "call":
            return "missed", "m", ("MISSED", {"yellow": True})
        return None


def _load(report: Any, item: TrialItem, call: pytest.CallInfo[None]) -> None:
    """Put on a report what the controller needs: the outcome once, and the gist that its text form would lose."""
    report.hillclimb_outcome, item.wire = item.wire, None
    if call.excinfo is not None and isinstance(call.excinfo.value, TrialFailure):
        report.hillclimb_gist = call.excinfo.value.gist
