"""Turning an outcome into what pytest understands: passed, failed, error, skipped, with its numbers as properties."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.errors import HillclimbError
from pytest_hillclimb.flow.layout import ERRORS, TRACES
from pytest_hillclimb.report import detail
from pytest_hillclimb.report.terminal import multiline, one_line
from pytest_hillclimb.wiring.collect import TrialItem
from pytest_hillclimb.wiring.failures import GradeMissed, NotMeasured
from pytest_hillclimb.wiring.run import EvalRun

_STREAMS = ("stdout", "stderr", "log")
_NUMBERS = ("latency_s", "cost_usd", "retries", "judge_retries")


class Presenter:
    """Reports outcomes through their items."""

    def __init__(self, config: pytest.Config, run: EvalRun) -> None:
        self._config = config
        self._run = run

    def recorded_outcome(self, item: TrialItem) -> Outcome:
        """Return the outcome that an earlier session recorded for the item."""
        execution = item.execution
        place = self._run.recorded.rows[execution.key]
        row: dict[str, Any] | None = None
        if place.passed is False:
            try:
                row = self._run.recorded.load(execution.key)
            except HillclimbError as error:
                row = {"prompt": execution.case.stored_prompt, "grade": {}, "explanation": {}, "status": str(error)}
        return Outcome(
            key=execution.key,
            label=execution.label,
            file_stem=execution.file_stem,
            kind=Kind.SCORED,
            row=row,
            passed=place.passed,
            recorded=True,
        )

    def present(self, item: TrialItem, outcome: Outcome) -> None:
        """Give the item its properties and sections, and raise what its outcome means to pytest."""
        before = item.trial is None
        self._add_properties(item, outcome, before=before)
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
                rows = self._shown(self._run.variant_path / ERRORS)
                lines = detail.unmeasured(item.execution.case, outcome.row, outcome.place, rows)
                raise NotMeasured(detail.headline(outcome.row), lines)
        item.missed = outcome.passed is False
        if item.missed and self._run.settings.fail_on == "grade":
            raise GradeMissed(self._gist(outcome, before), self.missed_lines(item, outcome))

    def missed_lines(self, item: TrialItem, outcome: Outcome) -> list[str]:
        """Return the details of an execution whose grade did not pass."""
        trace = self._run.variant_path / TRACES / f"{item.execution.file_stem}.json"
        row = outcome.row or {}
        shown = self._shown(trace) if trace.is_file() else None
        return detail.missed(item.execution.case, row, outcome.output, shown)

    def _gist(self, outcome: Outcome, before: bool) -> str:
        gist = f"grade did not pass: {detail.missed_gist(outcome.row or {})}"
        return f"recorded: {gist}" if before else gist

    def _add_properties(self, item: TrialItem, outcome: Outcome, *, before: bool) -> None:
        properties: list[tuple[str, object]] = []
        if before:
            properties.append(("hillclimb.recorded", "true"))
        row = outcome.row or {}
        grade = row.get("grade")
        for metric, value in (grade if isinstance(grade, dict) else {}).items():
            properties.append((f"hillclimb.grade.{one_line(metric)}", value))
        meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
        for name in _NUMBERS:
            value = row.get(name, meta.get(name) if meta else None)
            if isinstance(value, (int, float)) and (value or name == "latency_s"):
                properties.append((f"hillclimb.{name}", value))
        for name, value in (row.get("usage") or {}).items() if isinstance(row.get("usage"), dict) else ():
            if isinstance(value, int) and name.endswith("_tokens"):
                properties.append((f"hillclimb.{one_line(name)}", value))
        for name in ("model", "status", "failure_class"):
            if isinstance(row.get(name), str):
                properties.append((f"hillclimb.{name}", one_line(row[name])))
        item.user_properties = [*(p for p in item.user_properties if not p[0].startswith("hillclimb.")), *properties]

    def _shown(self, path: Path) -> str:
        return os.path.relpath(path, self._config.invocation_params.dir)


class Reporting:
    """Shapes pytest's reports of items: E for what was not measured, true durations, ``missed`` as a word."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Shape the report of the call phase."""
        report: pytest.TestReport = yield
        if not isinstance(item, TrialItem) or report.when != "call":
            return report
        outcome = item.outcome
        if outcome is not None and outcome.duration:
            report.start, report.duration = outcome.started, outcome.duration
            report.stop = outcome.started + outcome.duration
        if report.skipped and isinstance(report.longrepr, tuple):
            report.longrepr = (str(item.path), (item.reportinfo()[1] or 0) + 1, report.longrepr[2])
        if report.failed and call.excinfo is not None and isinstance(call.excinfo.value, NotMeasured):
            # What pytest shows as E and JUnit as an error is a failure outside of the call.
            report.when = "setup"
        if report.passed and item.missed:
            report.hillclimb_missed = True  # type: ignore[attr-defined]
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport | pytest.CollectReport) -> Any:
        """Call a miss that is not red by its name."""
        if getattr(report, "hillclimb_missed", False) and report.when == "call":
            return "missed", "m", ("MISSED", {"yellow": True})
        return None
