"""What judges raise themselves; exceptions of the SDK pass through as they are, for the trial to retry."""

from __future__ import annotations

from typing import Any

from pytest_hillclimb.errors import HillclimbError


class JudgeError(HillclimbError):
    """There is no verdict: it cannot be read, or the model must not judge here. Never retried.

    Fields: ``failure_class`` (``judge_error``, or ``serving_substitution`` when another model judged than was asked),
    ``judge_model`` as served, ``judge_usage``, what all judging of this attempt was billed so far, and ``excerpt``, the
    beginning of what the judge answered. None, and an empty excerpt, where nothing was answered.
    """

    failure_class: str
    judge_model: str | None
    judge_usage: dict[str, Any] | None
    excerpt: str
