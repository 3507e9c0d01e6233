"""What the client raises itself; exceptions of the SDK pass through as they are."""

from __future__ import annotations

from pytest_hillclimb.engine.final_answer import AnswerError

__all__ = ["AnswerError"]
