"""Guard off: whoever ends a trial also records it, and waits for that."""

from pytest_hillclimb.flow.writer import Writer


def put(self, outcome):
    self._recorder.record(outcome)
    self._on_recorded(outcome)


Writer.put = put
