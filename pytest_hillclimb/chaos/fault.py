"""A fault that is to be injected into one attempt, and the record of whether it took effect."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pytest_hillclimb.chaos.scenarios import Scenario

T = TypeVar("T")


class Fault:
    """``ctx.fault``: what is to go wrong in this attempt of a chaos case.

    Phase and parameters depend on scenario and seed alone, so that a fault can be had again. Whoever makes it happen
    says so with :meth:`fire`, from any thread.

    :param scenario: what goes wrong
    :param seed: chooses phase and parameters
    :param attempt: number of the attempt, from 1
    :param remaining: returns the seconds to the deadline of the execution
    """

    def __init__(self, scenario: Scenario, seed: int, *, attempt: int, remaining: Callable[[], float]) -> None:
        self.scenario = scenario
        self.seed = seed
        self.attempt = attempt
        self.phase: str = _choose(scenario.phases, seed, "phase")
        """The moment at which it is to strike."""
        self.parameters: dict[str, Any] = {
            name: _choose(choices, seed, name) for name, choices in scenario.parameters.items()
        }
        """How it is to strike."""
        self.receipt: object | None = None
        """What the harness returned when it was asked to inject the fault."""
        self._remaining = remaining
        self._lock = threading.Lock()
        self._fired = False
        self._evidence: dict[str, None] = {}

    @property
    def id(self) -> str:
        """Name of this very fault: that of its scenario, the seed and the attempt."""
        return f"{self.scenario.id}-{self.seed:08x}-{self.attempt}"

    @property
    def kind(self) -> str:
        """What goes wrong, such as ``restart``."""
        return self.scenario.fault

    @property
    def invariant(self) -> str:
        """What must hold although it went wrong."""
        return self.scenario.invariant

    @property
    def fired(self) -> bool:
        """Whether it is known to have taken effect."""
        return self._fired

    @property
    def evidence(self) -> tuple[str, ...]:
        """What shows that it took effect, such as ids of events or processes, each once, in the order of their report.

        A fault without evidence is not believed to have fired.
        """
        with self._lock:
            return tuple(self._evidence)

    def remaining(self) -> float:
        """Return the seconds to the deadline of the execution, ``math.inf`` when there is none."""
        return self._remaining()

    def fire(self, evidence_id: str | int | None = None) -> None:
        """Record that the fault took effect.

        :param evidence_id: names what shows it; None or blank text when nothing does
        :raises TypeError: for anything that is no id
        """
        if evidence_id is not None and (isinstance(evidence_id, bool) or not isinstance(evidence_id, (str, int))):
            raise TypeError(f"fire: expected an id (text or a whole number), got {type(evidence_id).__name__}")
        name = "" if evidence_id is None else str(evidence_id).strip()
        with self._lock:
            self._fired = True
            if name:
                self._evidence[name] = None

    def __repr__(self) -> str:
        return f"<Fault {self.id} at {self.phase}, {'fired' if self._fired else 'not fired'}>"


def _choose(choices: Sequence[T], seed: int, name: str) -> T:
    digest = hashlib.sha256(f"{seed}\0{name}".encode()).digest()
    return choices[int.from_bytes(digest[:8], "big") % len(choices)]
