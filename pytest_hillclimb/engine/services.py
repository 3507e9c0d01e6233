"""What a trial needs of the engine around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pytest_hillclimb.engine.loop import AsyncCall
    from pytest_hillclimb.engine.trial import Trial


class Services(Protocol):
    """The engine, as its trials see it."""

    def watch(self, trial: Trial) -> None:
        """Call ``trial.expire`` when its deadline passes."""

    def start_call(self, call: AsyncCall, *, alone: bool) -> None:
        """Start a coroutine on the common loop, or on a loop of its own."""

    def stopping(self) -> bool:
        """Return whether nothing more may be started, retries included."""

    def pause(self, seconds: float, label: str) -> None:
        """Start nothing for *seconds*, as a server has asked the trial called *label* to wait."""

    def affords(self, trial: Trial, spent: float, usd: float) -> bool:
        """Set *usd* aside for *trial*, which has *spent* so far; return False when a ceiling has not as much left."""

    def ended(self, trial: Trial) -> None:
        """Take note that *trial* has its outcome; called once for each trial."""
