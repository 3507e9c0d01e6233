"""The cost ceiling under pytest-xdist: workers cannot ask one another, so each gets a share of it.

What may go unused: of each worker's share, what is less than the worst case of the execution that it met last. A worker
whose share is used up gets no more executions as long as another one can take them; what pytest-xdist had handed to it
before (one or two executions, a whole scope under ``--dist`` loadscope, loadfile and loadgroup) it skips. The share of
a worker that died goes to the one in its place, and unused if there is none.
"""

from __future__ import annotations

from typing import Any

_NOTHING = 1e-9  # USD; a share must be above 0


class Shares:
    """Divides a ceiling among workers.

    :param ceiling: in USD
    :param workers: how many there are at the start
    """

    def __init__(self, ceiling: float, workers: int) -> None:
        self.whole = ceiling / max(1, workers)
        """The share of each worker at the start, in USD; an execution that may cost more is never run."""
        self._left: dict[str, float] = {}
        self._returned: dict[str, float] = {}
        self._used_up: set[str] = set()

    def give(self, worker: str) -> float:
        """Return the share of a new worker, in USD: that of a lost one, as far as it is left, if there is one."""
        heir_of = next(iter(self._returned), None)
        share = self.whole if heir_of is None else self._returned.pop(heir_of)
        self._left[worker] = share
        return max(share, _NOTHING)

    def charge(self, worker: str, cost: float) -> None:
        """Note what a worker has spent; also of one that was lost, as long as nobody has its share."""
        for shares in (self._left, self._returned):
            if worker in shares:
                shares[worker] -= cost

    def lose(self, worker: str) -> None:
        """Note that a worker has died: another one gets what is left of its share. Twice is harmless."""
        if worker in self._left:
            self._returned[worker] = self._left.pop(worker)
            self._used_up.discard(worker)

    def used_up(self, worker: str) -> bool:
        """Note that a worker could not pay for an execution; return whether others have something left."""
        self._used_up.add(worker)
        return bool(self._left.keys() - self._used_up)


def planned_workers(option: Any) -> int:
    """Return how many workers the options of pytest-xdist ask for, 1 without it."""
    specs = [str(spec).partition("*") for spec in getattr(option, "tx", None) or ()]
    return sum(int(count) if star and count.isdigit() else 1 for count, star, _ in specs) or 1
