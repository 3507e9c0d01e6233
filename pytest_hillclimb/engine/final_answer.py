"""What a run must not be scored on: a last answer that is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_hillclimb.errors import HillclimbError


class AnswerError(HillclimbError):
    """The model's answer is none that could be graded. Never retried.

    Fields: ``failure_class`` (``incomplete`` or ``unknown_stop_reason``), ``model`` as served, and ``usage``, what was
    billed for all calls of the run; both None where the API has not told.
    """

    failure_class: str
    model: str | None
    usage: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why an answer is none: its failure class, and a text for people."""

    failure_class: str
    text: str
