"""Guard off: one execution that cannot be measured ends the campaign."""

from pytest_hillclimb.engine.outcome import Outcome

Outcome.stop_reason = property(lambda self: self.failure_class)
