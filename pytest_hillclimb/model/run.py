"""What the user's app gave for one case: output, transcript and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.case import Attachment
from pytest_hillclimb.model.jsonable import plain

BILLED = ("model", "usage", "judge_model", "judge_usage")
"""The keys of a run that tell what was billed."""

_TRUNCATING = ("max_tokens", "model_context_window_exceeded")


class Turn(BaseModel):
    """One turn of a transcript.

    ``role`` is one of system, user, assistant, tool_call, tool_result. One turn per tool call and per result;
    ``thinking`` sits on the turn that it precedes. Other fields are kept.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    role: str
    content: Any = None
    name: str | None = None
    thinking: str | None = None
    attachments: list[Attachment] | None = None


class Run(BaseModel):
    """What ``run_case`` returns; a mapping with the same keys works too, and every key is optional.

    A key given as None is written to the row as null, a key not given is absent. ``usage`` uses the names
    ``input_tokens``, ``output_tokens``, ``cache_read_input_tokens`` and ``cache_creation_input_tokens``. Keys that are
    not listed here are kept for the grader and for ``pytest_hillclimb_perf``.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    output: Any = None
    transcript: list[Any] | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None
    status: str | None = None
    judge_model: str | None = None
    judge_usage: dict[str, Any] | None = None
    tool_calls: int | float | None = None
    web_searches: int | float | None = None

    @property
    def resolved_status(self) -> str:
        """The status of the row: as given, else ``truncated`` for an answer that was cut off, else ``ok``."""
        return self.status or ("truncated" if self.stop_reason in _TRUNCATING else "ok")


def read_run(value: object) -> Run:
    """Return what the app gave as a ``Run`` of plain JSON data.

    :raises BadValueError: with the path of what cannot be a run
    """
    if not isinstance(value, (Run, Mapping)):
        raise BadValueError.at("run", f"expected a Run or a mapping from run_case, got {type(value).__name__}")
    data = plain(value, "run")
    transcript = data.get("transcript")
    if transcript is not None and not isinstance(transcript, list):
        raise BadValueError.at("run.transcript", f"expected a list of turns, got {type(transcript).__name__}")
    for index, turn in enumerate(transcript or ()):
        if not isinstance(turn, dict):
            raise BadValueError.at(f"run.transcript[{index}]", f"expected a turn, got {type(turn).__name__}")
    if data.get("status") == "error":
        raise BadValueError.at("run.status", "'error' marks rows that hold no score; raise an exception instead")
    try:
        return Run.model_validate(data)
    except ValidationError as error:
        raise _bad_field(error) from None


def _bad_field(error: ValidationError) -> BadValueError:
    first = error.errors(include_url=False, include_input=False)[0]
    return BadValueError.at(f"run.{first['loc'][0]}", first["msg"].lower())


def billed(value: object) -> dict[str, Any]:
    """Return the keys of *value* (a run, a mapping or an exception) that tell what was billed, as far as readable.

    What a user's code gave may be anything; what cannot be read as JSON is left out.
    """
    found: dict[str, Any] = {}
    for key, kind in (("model", str), ("usage", dict), ("judge_model", str), ("judge_usage", dict)):
        try:
            raw = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
            data = plain(raw, key)
        except BaseException:  # properties of foreign objects raise what they like
            continue
        if isinstance(data, kind):
            found[key] = data
    return found
