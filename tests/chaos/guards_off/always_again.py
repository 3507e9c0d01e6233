"""Guard off: what can be tried again is, whatever failed and however often."""

from pytest_hillclimb.engine.retry import RetryPolicy

RetryPolicy._stop = lambda self, state: state.attempt_number >= 7
