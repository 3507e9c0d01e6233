"""Guard off: whatever is delivered is taken, by the controller of workers and by the recorder."""

from pytest_hillclimb.flow.deliveries import Deliveries, Delivery
from pytest_hillclimb.wiring.controller import Controller


def take(self, outcome, node=None):
    if self.opened:
        self.evals.writer.put(outcome)


Controller._take = take
Deliveries.take = lambda self, outcome, line: Delivery.NEW
