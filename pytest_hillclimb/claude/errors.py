"""What the client raises itself; exceptions of the SDK pass through as they are."""

from __future__ import annotations

from typing import Any

from pytest_hillclimb.errors import HillclimbError


class AnswerError(HillclimbError):
    """The model's answer is none that could be graded.

    Fields: ``failure_class`` (``incomplete`` or ``unknown_stop_reason``), ``model`` as served, and ``usage``, what was
    billed for all calls of the run; both None where the API has not told.
    """

    failure_class: str
    model: str | None
    usage: dict[str, Any] | None
