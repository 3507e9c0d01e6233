"""The recorder: one row per outcome, with the trace that belongs to it, whoever delivers it and however often."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.flow.layout import FlowDir
from pytest_hillclimb.flow.recorder import Recorder
from pytest_hillclimb.flow.writer import Writer
from pytest_hillclimb.report.tally import Tally

TURNS = [{"role": "assistant", "content": f"turn {n} " + "x" * 1000} for n in range(10)]
CAP = 1024 * 4


@pytest.fixture
def flow(tmp_path: Path) -> FlowDir:
    return FlowDir(tmp_path, "flow")


def scored(case: str = "a", grade: float = 1.0, **more: Any) -> Outcome:
    row = {"prompt_id": case, "rep": 0, "usage": {"input_tokens": 3}, "status": "ok", "grade": {"score": grade}}
    given = {"kind": Kind.SCORED, "row": row, "transcript": list(TURNS), "output": case, **more}
    return Outcome(key=(case, 0), label=f"{case} rep0", file_stem=f"{case}_rep0", **given)


def failed(case: str = "a", failure_class: str = "worker_lost") -> Outcome:
    row = {"prompt_id": case, "rep": 0, "failure_class": failure_class, "usage": {"input_tokens": 5}}
    return scored(case, kind=Kind.FAILED, row=row, transcript=None)


def rows(flow: FlowDir, name: str = "results") -> list[dict[str, Any]]:
    file = flow.path / f"baseline/{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def trace(flow: FlowDir, case: str = "a") -> bytes:
    return (flow.path / f"baseline/traces/{case}_rep0.json").read_bytes()


def test_trace_over_the_cap_is_cut_and_its_row_says_so(flow: FlowDir) -> None:
    recorder, given = Recorder(flow, "baseline", max_trace_bytes=CAP), scored()
    whole = json.dumps(TURNS, indent=2).encode()
    assert recorder.record(given)
    kept = trace(flow)
    assert len(kept) <= CAP
    assert json.loads(kept) == TURNS[:3]
    told = {"kept_turns": 3, "turns": 10, "kept_bytes": len(kept), "bytes": len(whole)}
    assert rows(flow) == [{**scored().row, "meta": {"trace_truncated": told}}]  # type: ignore[dict-item]
    assert given.passed is None
    assert recorder.warnings == [
        f"a rep0: the trace was cut to 3 of 10 turns; its {len(whole)} bytes are over the cap of {CAP}"
    ]


@pytest.mark.parametrize("room", [0, 1])
def test_trace_that_fits_is_whole_and_its_row_untouched(flow: FlowDir, room: int) -> None:
    whole = json.dumps(TURNS, indent=2).encode()
    recorder = Recorder(flow, "baseline", max_trace_bytes=len(whole) + room)
    recorder.record(scored())
    assert trace(flow) == whole
    assert rows(flow) == [scored().row]
    assert recorder.warnings == []


def test_keys_of_a_cases_own_meta_stay(flow: FlowDir) -> None:
    given = scored()
    assert given.row is not None
    given.row["meta"] = {"why": "x"}
    Recorder(flow, "baseline", max_trace_bytes=CAP).record(given)
    assert list(rows(flow)[0]["meta"]) == ["why", "trace_truncated"]


def test_outcome_that_is_delivered_again_is_one_row(flow: FlowDir) -> None:
    recorder, first = Recorder(flow, "baseline", max_trace_bytes=CAP), scored()
    assert recorder.record(first)
    before = (flow.path / "baseline/results.jsonl").read_bytes()
    (flow.path / "baseline/traces/a_rep0.json").unlink()
    again = scored(transcript=[])
    assert not recorder.record(first)  # its row has a note on the trace by now
    assert not recorder.record(again)
    assert (flow.path / "baseline/results.jsonl").read_bytes() == before
    assert not (flow.path / "baseline/traces/a_rep0.json").exists(), "nothing is written for it"
    assert (recorder.deliveries.repeated, recorder.deliveries.conflicting) == (2, 0)
    assert again.recorded, "who waits for it must go on"
    assert (again.transcript, again.output) == (None, None)
    assert len(recorder.warnings) == 1


def test_other_content_for_a_row_is_refused_and_named(flow: FlowDir) -> None:
    recorder, other = Recorder(flow, "baseline"), scored(grade=0.0)
    recorder.record(scored())
    kept = trace(flow)
    assert not recorder.record(other)
    assert not recorder.record(failed())
    assert rows(flow) == [scored().row]
    assert rows(flow, "errors") == []
    assert trace(flow) == kept
    assert recorder.deliveries.conflicting == 2
    assert (
        recorder.warnings == ["a rep0: delivered again with another content; the row that was written first stays"] * 2
    )
    assert other.recorded


def test_retry_of_an_execution_that_was_lost_with_its_worker(flow: FlowDir) -> None:
    recorder = Recorder(flow, "baseline")
    for given in (failed(), scored(), failed(), failed("b"), failed("b", "timeout")):
        recorder.record(given)
    assert rows(flow) == [scored().row]
    assert rows(flow, "errors") == [failed().row, failed("b").row, failed("b", "timeout").row]
    assert (recorder.deliveries.repeated, recorder.deliveries.conflicting) == (1, 0)
    assert recorder.warnings == []


def test_many_threads_deliver_one_outcome(flow: FlowDir) -> None:
    recorder, barrier, new = Recorder(flow, "baseline"), threading.Barrier(8), list[bool]()

    def deliver() -> None:
        barrier.wait()
        new.extend(recorder.record(scored(f"c{n}")) for n in range(20))

    threads = [threading.Thread(target=deliver) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(new) == 20
    assert sorted(row["prompt_id"] for row in rows(flow)) == sorted(f"c{n}" for n in range(20))
    assert recorder.deliveries.repeated == 7 * 20


def twice(put: Callable[[Outcome], None]) -> None:
    for _ in range(2):
        put(scored())
        put(failed("b"))
    put(scored(grade=0.0))


def test_counts_and_spend_are_those_of_one_delivery(flow: FlowDir) -> None:
    tally = Tally()
    writer = Writer(Recorder(flow, "baseline"), on_recorded=tally.add, on_failure=pytest.fail, on_progress=lambda: None)
    twice(writer.put)
    writer.close()
    assert (tally.scored, tally.failed) == (1, 1)
    assert tally.tokens == {"input_tokens": 8}
    assert [score for _, _, score in tally.scores] == [{"score": 1.0}]
