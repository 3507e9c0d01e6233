"""The ledger of a campaign: how much has been spent, and how much is set aside for trials that are in flight.

A trial's worst case is reserved before it starts and settled with its real cost when it has ended, so that the ceiling
holds however many run at once: spend passes it by no more than trials cost beyond what was reserved for them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from decimal import Context, Decimal
from threading import Lock

_SUMS = Context(prec=60, traps=[])  # of our own: user code on the same thread may change the current context


class Ledger:
    """Keeps spend under a ceiling. Amounts are in US dollars; every method may be called from any thread.

    Sums are decimal, of amounts as they are written, so that ten times 0.1 reaches a ceiling of 1 exactly, which is
    within it.

    :param ceiling: a finite number above 0
    :param whose: what messages add to the ceiling, where it is not that of the whole campaign
    :raises ValueError: from the constructor and every method, for an amount that is negative or not finite
    """

    def __init__(self, ceiling: float, whose: str = "") -> None:
        self.whose = whose
        self._ceiling = _amount(ceiling)
        if not self._ceiling:
            raise ValueError("a ceiling must be above 0")
        self._spent = Decimal(0)
        self._reserved: dict[Hashable, Decimal] = {}
        self._lock = Lock()

    @property
    def ceiling(self) -> float:
        """What may be spent."""
        return float(self._ceiling)

    @property
    def spent(self) -> float:
        """What has been spent."""
        return float(self._spent)

    @property
    def reserved(self) -> float:
        """What is set aside for trials in flight."""
        with self._lock:
            return float(self._set_aside())

    @property
    def remaining(self) -> float:
        """What is neither spent nor set aside, never below 0."""
        with self._lock:
            return max(0.0, float(self._left()))

    @property
    def in_flight(self) -> int:
        """How many trials have a reservation."""
        return len(self._reserved)

    def reserve(self, key: Hashable, worst_case: float) -> bool:
        """Set *worst_case* aside for the trial *key* and return True; return False when there is not as much left.

        Where nothing at all is left, not even a worst case of 0 is granted.

        :raises ValueError: when the trial has a reservation already
        """
        amount = _amount(worst_case)
        with self._lock:
            if key in self._reserved:
                raise ValueError(f"{key!r} has a reservation already")
            left = self._left()
            if left <= 0 or amount > left:
                return False
            self._reserved[key] = amount
            return True

    def raise_to(self, key: Hashable, amount: float) -> bool:
        """Set *amount* aside for the trial in place of what was, if that is less; return False when too little is left.

        :raises ValueError: when the trial has no reservation
        """
        wanted = _amount(amount)
        with self._lock:
            if key not in self._reserved:
                raise ValueError(f"{key!r} has no reservation")
            more = _SUMS.subtract(wanted, self._reserved[key])
            if more > 0:
                if more > self._left():
                    return False
                self._reserved[key] = wanted
            return True

    def lower_to(self, key: Hashable, amount: float) -> None:
        """Set only *amount* aside for the trial, if that is less than what was.

        :raises ValueError: when the trial has no reservation
        """
        wanted = _amount(amount)
        with self._lock:
            if key not in self._reserved:
                raise ValueError(f"{key!r} has no reservation")
            self._reserved[key] = min(wanted, self._reserved[key])

    def settle(self, key: Hashable, cost: float) -> bool:
        """Replace the trial's reservation by what it cost, and return True.

        Without a reservation nothing is charged and False is returned: the same end was reported before.
        """
        amount = _amount(cost)
        with self._lock:
            if self._reserved.pop(key, None) is None:
                return False
            self._spent = _SUMS.add(self._spent, amount)
            return True

    def _set_aside(self) -> Decimal:
        total = Decimal(0)
        for amount in self._reserved.values():
            total = _SUMS.add(total, amount)
        return total

    def _left(self) -> Decimal:
        return _SUMS.subtract(_SUMS.subtract(self._ceiling, self._spent), self._set_aside())


def _amount(value: float) -> Decimal:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"not an amount of money: {value!r}")
    return Decimal(repr(float(value)))
