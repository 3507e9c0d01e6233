"""Fault: every outcome is delivered to the writer three times, by several threads, the last time with other content."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from pytest_hillclimb.engine.outcome import Outcome
from pytest_hillclimb.flow.writer import Writer
from pytest_hillclimb.wiring.wire import decode_outcome, encode_outcome

_put = Writer.put


def put(self: Writer, outcome: Outcome) -> None:
    same, other = (decode_outcome(encode_outcome(outcome)) for _ in range(2))
    assert other.row is not None
    other.row["grade"] = {"pass": 0, "other": 1}
    _put(self, outcome)
    for again in (same, other):
        _in_a_thread(_put, self, again)
    with Path("evidence.log").open("a") as file:
        file.write(f"delivered {outcome.label} again\n")


def _in_a_thread(function: Any, *arguments: Any) -> None:
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join()


Writer.put = put  # type: ignore[method-assign]
