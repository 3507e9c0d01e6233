"""The one writer of a variant: what a trial ended as goes to disk here, and nowhere else.

Pattern: artifacts, trace and (in the baseline) reference are written first, the row last and in one write. So a row
that is there has all that belongs to it, also after the process was killed. An outcome that is delivered twice is
written once.

Accepted trade-offs: a trace or reference that cannot be written does not cost the row; the row says so in
``meta.trace_error``. A trace over the cap is cut after a whole turn; the row says so in ``meta.trace_truncated``. When
a row itself cannot be written, it goes to a temporary file that the message names, and nothing more should be started.

Scope: any thread may record; one outcome is written at a time.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.errors import RefusedError, WriteError
from pytest_hillclimb.flow.deliveries import Deliveries, Delivery
from pytest_hillclimb.flow.journal import Journal
from pytest_hillclimb.flow.layout import BASELINE, ERRORS, OUT, REF, RESULTS, TRACES, FlowDir
from pytest_hillclimb.flow.references import References
from pytest_hillclimb.flow.safe import SafeDir
from pytest_hillclimb.flow.traces import MAX_TRACE_BYTES, encode_turns
from pytest_hillclimb.model.jsonable import compact
from pytest_hillclimb.model.rows import Row
from pytest_hillclimb.model.settings import MAIN

_EXCERPT_CHARS = 4000


class Recorder:
    """Appends the rows of one variant.

    :param flow: the flow directory, whose variant the caller holds the lock of
    :param variant: name of the variant
    :param scored: the path-safe ids that have rows already
    :param max_trace_bytes: cap on the file of one trace, from 2
    :param lane: any but main is written into the ``meta`` of rows, and freezes no references
    :raises WriteError: if a journal cannot be opened
    :raises RefusedError: if a directory cannot be made or used
    """

    def __init__(
        self,
        flow: FlowDir,
        variant: str,
        scored: Collection[str] = (),
        max_trace_bytes: int = MAX_TRACE_BYTES,
        lane: str = MAIN,
    ) -> None:
        self.warnings: list[str] = []
        self.rescue: str | None = None
        """The temporary file that holds the rows which the disk did not take; None if there is none."""
        self.unsaved: list[str] = []
        """The rows that no disk took, as JSON; all that is left is to show them."""
        self.failed = False
        """Whether the disk has failed to take a row, after which no row is written to it any more."""
        self.deliveries = Deliveries()
        """The outcomes that were taken, and how many were not because they came twice."""
        self._recording = threading.Lock()
        self._max_trace_bytes = max_trace_bytes
        self._directory = flow.make(variant)
        self._traces = flow.make(variant, TRACES)
        self._lane = lane
        freezes = variant == BASELINE and lane == MAIN
        self._refs = References(flow.make(BASELINE, REF), scored) if freezes else None
        self._flow = flow
        self._variant = variant
        self._journals = {name: Journal(self._directory, name) for name in (RESULTS, ERRORS)}
        self._unsynced = False

    def record(self, outcome: Outcome) -> bool:
        """Write what *outcome* holds, then let go of everything large.

        :returns: whether it was new; what was delivered before is not written again, and what conflicts with it is
            refused with a warning
        :raises WriteError: if the row could not be written; it is in the file that the message names
        """
        with self._recording:
            try:
                return self._record(outcome)
            finally:
                outcome.transcript, outcome.attachments = None, {}
                outcome.output = None if outcome.passed is not False else _excerpt(outcome.output)
                outcome.recorded = True

    def _record(self, outcome: Outcome) -> bool:
        row = outcome.row
        if row is not None and self._lane != MAIN:
            marks = {"lane": self._lane, "classification": outcome.classification}
            row["meta"] = {**(row.get("meta") or {}), **marks}
        line = _line(row) if row is not None else b""
        delivery = self.deliveries.take(outcome, line)
        if delivery is Delivery.CONFLICTING:
            self.warnings.append(
                f"{outcome.label}: delivered again with another content; the row that was written first stays"
            )
        if row is not None and delivery is Delivery.NEW:
            self._write(outcome, row, line)
        return delivery is Delivery.NEW

    def _write(self, outcome: Outcome, row: Row, line: bytes) -> None:
        notes: dict[str, Any] = {}
        try:
            self._write_artifacts(outcome)
            if outcome.kind is Kind.SCORED:
                notes = self._write_trace(outcome)
                self._freeze(outcome)
        except Exception as error:  # nothing that goes with a row may cost the row
            self.warnings.append(f"{outcome.label}: {type(error).__name__}: {error}")
        if notes:
            row["meta"] = {**(row.get("meta") or {}), **notes}
            line = _line(row)
            self.deliveries.amend(outcome, line)
        self._append(RESULTS if outcome.kind is Kind.SCORED else ERRORS, line)

    def sync(self) -> None:
        """Wait until the disk has every row that was written.

        :raises WriteError: if the disk reports a failure
        """
        if not self._unsynced:
            return
        self._unsynced = False
        with ExitStack() as stack:
            for journal in self._journals.values():
                stack.callback(journal.sync)  # each, also when one fails

    def close(self) -> None:
        """Sync and close the journals; errors as in :meth:`sync`."""
        try:
            self.sync()
        finally:
            for journal in self._journals.values():
                journal.close()

    def _append(self, name: str, line: bytes) -> None:
        if not self.failed:
            try:
                self._journals[name].append(line)
                self._unsynced = True
                return
            except WriteError as error:
                self.failed = True
                self._keep_elsewhere(line)
                where = self.rescue or "no file"
                raise WriteError(f"{error.message}; rows that were paid for are in {where}") from error
        self._keep_elsewhere(line)

    def _keep_elsewhere(self, line: bytes) -> None:
        try:
            if self.rescue is None:
                fd, self.rescue = tempfile.mkstemp(prefix="hillclimb-rows-", suffix=".jsonl")
                os.close(fd)
            with open(self.rescue, "ab") as file:
                file.write(line + b"\n")
        except OSError:
            self.unsaved.append(line.decode())

    def _write_trace(self, outcome: Outcome) -> dict[str, Any]:
        """Write the trace of an outcome; return what its row is to say about it."""
        name = f"{outcome.file_stem}.json"
        try:
            if outcome.transcript is None:
                self._traces.remove(name)  # one that a killed run left is not this row's
                return {}
            trace = encode_turns(outcome.transcript, self._max_trace_bytes)
            _write(self._traces, name, trace.data)
        except (OSError, RefusedError) as error:
            self.warnings.append(f"{outcome.label}: the trace could not be written: {error}")
            return {"trace_error": str(error)}
        cut = trace.truncated
        if cut is None:
            return {}
        self.warnings.append(
            f"{outcome.label}: the trace was cut to {cut['kept_turns']} of {cut['turns']} turns; "
            f"its {cut['bytes']} bytes are over the cap of {self._max_trace_bytes}"
        )
        return {"trace_truncated": cut}

    def _freeze(self, outcome: Outcome) -> None:
        if self._refs is None or outcome.output is None:
            return
        try:
            self._refs.freeze(outcome.key[0], outcome.output)
        except (OSError, RefusedError) as error:
            self.warnings.append(f"{outcome.label}: the reference could not be frozen: {error}")

    def _write_artifacts(self, outcome: Outcome) -> None:
        if not outcome.attachments:
            return
        try:
            with self._flow.make(self._variant, OUT).make_dir(outcome.file_stem) as directory:
                for name, content in outcome.attachments.items():
                    _write(directory, name, content)
        except (OSError, RefusedError) as error:
            self.warnings.append(f"{outcome.label}: artifacts could not be written: {error}")


def _write(directory: SafeDir, name: str, data: bytes) -> None:
    """Write a file that is usually new: a killed run may have left one without its row."""
    try:
        directory.create(name, data)
    except FileExistsError:
        directory.overwrite(name, data)


def _line(row: Row) -> bytes:
    return compact(row).encode()


def _excerpt(output: Any) -> str | None:
    if output is None:
        return None
    return (output if isinstance(output, str) else compact(output))[:_EXCERPT_CHARS]
