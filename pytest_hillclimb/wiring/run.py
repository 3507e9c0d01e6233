"""One run of an eval: the flow directory it writes to, the app it runs, and the account of what came of it."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

import pytest_hillclimb
from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.errors import HillclimbError, RefusedError, WriteError
from pytest_hillclimb.flow.layout import BASELINE, PROGRESS, REF, RESULTS, TRACES, FlowDir
from pytest_hillclimb.flow.lock import VariantLock
from pytest_hillclimb.flow.recorded import Recorded, read_recorded
from pytest_hillclimb.flow.recorder import Recorder
from pytest_hillclimb.flow.references import read_reference
from pytest_hillclimb.flow.repository import commit_of
from pytest_hillclimb.flow.rows import variant_rows
from pytest_hillclimb.flow.runfile import (
    add_summary,
    check_lane,
    check_model,
    clear_rows,
    recorded_matrix,
    write_run,
)
from pytest_hillclimb.flow.safe import SafeDir
from pytest_hillclimb.flow.writer import Writer
from pytest_hillclimb.model.ids import MAX_UNCHANGED
from pytest_hillclimb.model.settings import CHAOS, MAIN, PROBES, Settings
from pytest_hillclimb.model.state import LoopState
from pytest_hillclimb.report.tally import Tally
from pytest_hillclimb.schedule.plan import Execution, Key
from pytest_hillclimb.stats.spend import Spend, spend
from pytest_hillclimb.wiring.activation import Activation
from pytest_hillclimb.wiring.campaign import Campaign
from pytest_hillclimb.wiring.signals import Interrupts


class EvalRun:
    """Holds a run's directory open from its first execution to the end of the session.

    :param tells_all: whether to read what the variant has cost although nothing was run
    """

    def __init__(
        self, activation: Activation, state: LoopState, campaign: Campaign, *, tells_all: bool = False
    ) -> None:
        self.settings: Settings = activation.settings
        self.state = state
        self.campaign = campaign
        self.tally = Tally(campaign.row_cost)
        self.recorded = Recorded()
        self.other_matrix = False
        """Whether rows are recorded that another schedule, rotation or seed has planned."""
        self.spend: Spend | None = None
        """What the variant has cost, known once the run is closed; None where nothing has a price."""
        self.warnings: list[str] = []
        self.started_at = monotonic()
        self._activation = activation
        self._tells_all = tells_all
        self._read_from = FlowDir(self.settings.flow_base, self.settings.records)
        self._main = FlowDir(self.settings.flow_base, self.settings.flow)
        self._flow = self._read_from
        self._references: SafeDir | None = None
        self.interrupts = Interrupts()
        self._lock: VariantLock | None = None
        self._recorder: Recorder | None = None
        self._writer: Writer | None = None

    @property
    def variant_path(self) -> Path:
        """The directory that rows are written to."""
        return self._flow.path / self.settings.variant

    @property
    def results_path(self) -> Path:
        """The file of the scored rows."""
        return self.variant_path / RESULTS

    @property
    def failed(self) -> bool:
        """Whether the disk has failed to take a row."""
        return self._recorder is not None and self._recorder.failed

    @property
    def inconclusive(self) -> bool:
        """Whether it is a check of the grader that has shown nothing: no grade had a verdict."""
        return self.settings.lane in PROBES and not self.tally.passed + self.tally.missed

    @property
    def unsaved(self) -> list[str]:
        """The rows that no disk took, as JSON."""
        return self._recorder.unsaved if self._recorder is not None else []

    @property
    def rescue(self) -> str | None:
        """The temporary file that holds what the disk did not take."""
        return self._recorder.rescue if self._recorder is not None else None

    @property
    def writer(self) -> Writer:
        """The queue before the recorder; only while the run is open."""
        if self._writer is None:
            raise RuntimeError("the run is not open")
        return self._writer

    def look(self) -> Recorded:
        """Read what is recorded, without writing anything.

        :raises RefusedError: when the flow cannot be used, or its rows are of another model
        """
        directory = self._read_from.find(self.settings.variant) if not self.settings.fresh else None
        check_lane(directory, self.settings.lane)
        if not self.settings.fresh and self.settings.lane not in PROBES:
            if not self.recorded.is_current(directory):
                self.recorded = read_recorded(directory)
            tested, rows = self._tested(), self.recorded.rows
            check_model(directory, tested.get("model"), bool(rows), _with_rows(tested.get("candidates"), rows))
            if "matrix" in tested and rows and not self.other_matrix:
                matrix = recorded_matrix(directory)
                self.other_matrix = matrix is not None and matrix != tested["matrix"]
        self._references = self._main.find(BASELINE, REF) if self.settings.lane != CHAOS else None
        return self.recorded

    def open(self, *, on_failure: Callable[[str], None], selection: Mapping[str, Any]) -> None:
        """Take the lock, read what is recorded, and make ready to write.

        :raises RefusedError: when the flow cannot be used or another session has it
        """
        try:
            self._open(on_failure, selection)
        except BaseException:
            self.close()
            raise

    def _open(self, on_failure: Callable[[str], None], selection: Mapping[str, Any]) -> None:
        if self.settings.fresh:
            self._flow = FlowDir(Path(tempfile.mkdtemp(prefix="hillclimb-fresh-")), Path(self.settings.records).name)
        self._flow.preflight(self.settings.variant)
        directory = self._flow.make(self.settings.variant)
        self._lock = VariantLock.acquire(directory)
        self.look()
        if self.settings.lane in PROBES:
            clear_rows(directory)
        write_run(directory, self._facts(selection))
        scored = {prompt_id for prompt_id, _ in self.recorded.rows}
        try:
            cap = self.settings.max_trace_bytes
            self._recorder = Recorder(self._flow, self.settings.variant, scored, cap, self.settings.lane)
        except WriteError as error:
            raise RefusedError(error.message) from None
        self._writer = Writer(
            self._recorder, on_recorded=self.tally.add, on_failure=on_failure, on_progress=self.save_progress
        )
        self.interrupts.install()
        self.started_at = monotonic()

    def reference(self, prompt_id: str) -> str | None:
        """Return the frozen baseline output of what has this id in rows, None when there is none.

        :raises RefusedError: when what is there cannot be used
        """
        return read_reference(self._references, prompt_id)

    def earlier_outcome(self, execution: Execution) -> Outcome | None:
        """Return the outcome that an earlier session recorded for an execution, None when there is none."""
        place = self.recorded.rows.get(execution.key)
        if place is None:
            return None
        row: dict[str, Any] | None = None
        if place.passed is False or self.other_matrix:
            try:
                row = self.campaign.redactor.data(self.recorded.load(execution.key))  # another tool may have written it
            except HillclimbError as error:
                row = {"grade": {}, "explanation": {}, "status": str(error)}
        traces = self._read_from.find(self.settings.variant, TRACES)
        return Outcome(
            key=execution.key,
            label=execution.label,
            file_stem=execution.file_stem,
            kind=Kind.SCORED,
            row=row,
            passed=place.passed,
            has_trace=row is not None and traces is not None and traces.exists(f"{execution.file_stem}.json"),
            recorded=True,
            earlier=True,
        )

    def has_references(self) -> bool:
        """Return whether the baseline has frozen anything."""
        return self._references is not None

    def progress_line(self) -> str:
        """Return the progress line of this moment."""
        return self.tally.progress_line(self.settings.variant, monotonic() - self.started_at)

    def save_progress(self) -> None:
        """Put the progress line where tools look for it; of no use to anyone if it fails."""
        try:
            self._flow.make(self.settings.variant).overwrite(PROGRESS, self.progress_line().encode() + b"\n")
        except Exception as error:
            self.warnings.append(f"{PROGRESS} could not be written: {error}")

    def close(self) -> None:
        """Bring everything to disk, write the header for reports, and let go of the directory; twice is harmless."""
        writer, self._writer = self._writer, None
        try:
            if writer is not None and self._recorder is not None:
                writer.close()
                self.warnings += self._recorder.warnings
                self._finish(failed=self._recorder.failed)
        finally:
            if self._lock is not None:
                self._lock.release()
            self.interrupts.remove()
            for flow in (self._flow, self._read_from, self._main):
                flow.close()

    def _read_spend(self) -> None:
        """Add up what the variant has cost so far, earlier sessions included, where anything has a price."""
        if self.tally.cost().total is None and not (self._tells_all and self.recorded.rows):
            return
        try:
            rows = variant_rows(self._flow.make(self.settings.variant))
            self.spend = spend(rows, lambda row: self.campaign.row_cost(dict(row)))
        except RefusedError as error:
            self.warnings.append(f"the cost of the variant is not known: {error.message}")

    def _finish(self, *, failed: bool) -> None:
        self._read_spend()
        if not failed:
            self.save_progress()
            if warning := add_summary(self._flow.make(self.settings.variant), self._header()):
                self.warnings.append(warning)
        if moved := self._flow.moved(self.settings.variant):
            self.warnings.append(moved)

    def _header(self) -> dict[str, Any]:
        served = self.tally.models.most_common(1)
        model = served[0][0] if served else self._tested().get("model")
        if self.campaign.manifest is not None:
            model = None  # of many
        lane = f" ({self.settings.lane})" if self.settings.lane != MAIN else ""
        return {"label": f"{self.settings.variant}{lane}", **({"model": model} if model else {})}

    def _tested(self) -> dict[str, Any]:
        settings = self.settings
        tested: dict[str, Any] = {"model": settings.model}
        if (manifest := self.campaign.manifest) is not None:
            # What decides which executions there are, and their ids.
            turn = None if settings.rotation is None else manifest.turn(settings.rotation)
            matrix = {"schedule": settings.schedule, "rotation": turn, "seed": settings.seed}
            tested = {"candidates": self.campaign.models, "matrix": matrix}
        clean: dict[str, Any] = self.campaign.redactor.data(tested)
        return clean

    def _facts(self, selection: Mapping[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return {
            **self._tested(),
            "lane": self.settings.lane,
            "created_at": now,
            "updated_at": now,
            "reps": self.settings.reps,
            "timeout_s": self.settings.timeout,
            "concurrency": self.settings.concurrency,
            "max_cost_usd": self.settings.max_cost,
            "selection": self.campaign.redactor.data(dict(selection)),
            "harness_sha": self._activation.harness.sha,
            "commit": commit_of(self._activation.eval_root),
            "versions": {
                "python": platform.python_version(),
                "pytest": pytest.__version__,
                "pytest-hillclimb": pytest_hillclimb.__version__,
                "anthropic": version("anthropic"),
            },
        }


def _with_rows(candidates: Mapping[str, str] | None, rows: Iterable[Key]) -> dict[str, str] | None:
    """Return the candidates that may have rows: the others may be given another model."""
    if candidates is None:
        return None
    ids = {prompt_id for prompt_id, _ in rows}
    cut = any(len(id_) >= MAX_UNCHANGED for id_ in ids)  # such an id may have lost the name of its candidate
    return {name: model for name, model in candidates.items() if cut or any(id_.endswith(f".{name}") for id_ in ids)}
