"""Guard off: a trace that cannot be written takes its row along."""

from pytest_hillclimb.flow.layout import RESULTS
from pytest_hillclimb.flow.recorder import Recorder
from pytest_hillclimb.flow.traces import encode_turns
from pytest_hillclimb.model.jsonable import compact


def write(self, outcome, row, line):
    if outcome.transcript is not None:
        self._traces.create(f"{outcome.file_stem}.json", encode_turns(outcome.transcript).data)
    self._append(RESULTS, compact(row).encode())


Recorder._write = write
