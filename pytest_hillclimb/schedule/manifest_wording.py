"""How messages about a manifest name its parts, and which of them are text or the author's own."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from pydantic import BaseModel

from pytest_hillclimb.catalog.located import Steps
from pytest_hillclimb.catalog.wording import kind_of, quoted
from pytest_hillclimb.model.candidate import (
    MAX_CANDIDATE_ID,
    MAX_CYCLE,
    MAX_PREFIX,
    MAX_REPEATS,
    MAX_SLOT_ID,
    Budget,
    Candidate,
    Qualification,
    ScheduleRules,
    Slot,
)

SECTIONS = ("slots", "schedule")
"""The keys of a manifest."""

_ID_RULE = "a letter or digit, then letters, digits, '.', '_' and '-', at most {} characters"
_COUNT = "a whole number from 1"
_EXPECTED: Mapping[str, str] = {
    "slots": "a list of slots, each with an id and a list of candidates",
    "candidates": "a list of one or more candidates, each with an id and a model",
    "model": "the name of a model",
    "settings": "a mapping",
    "qualification": "a mapping with required_env and profile",
    "required_env": "a list of names of environment variables, such as OPENAI_API_KEY",
    "budget": f"a mapping with any of {', '.join(Budget.model_fields)}",
    "max_latency_ms": "milliseconds above 0; leave it out for no limit",
    "max_attempts": f"{_COUNT}; leave it out for no limit",
    "max_cost_usd": "US dollars from 0; leave it out for no limit",
    "max_total_tokens": f"{_COUNT}; leave it out for no limit",
    "phase": "a whole number",
    "schedule": f"a mapping with any of {', '.join(ScheduleRules.model_fields)}",
    "pair_offset": _COUNT,
    "candidates_per_case": _COUNT,
    "cycle": f"{_COUNT} to {MAX_CYCLE}",
    "repeats": f"a mapping of case ids to whole numbers from 1 to {MAX_REPEATS}",
    "id_prefix": f"letters, digits, '.', '_' and '-', at most {MAX_PREFIX}",
}
_SHAPES: Mapping[str, type[BaseModel]] = {
    "qualification": Qualification,
    "budget": Budget,
    "schedule": ScheduleRules,
}
_TEXTS = {
    "id",
    "slot_id",
    "model",
    "adapter",
    "provider",
    "tier",
    "reasoning_effort",
    "profile",
    "required_env",
    "id_prefix",
}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


def is_opaque(path: Steps) -> bool:
    """Return whether *path* is, or leads into, a mapping whose names belong to the author: settings and repeats."""
    return path[4:5] == ("settings",) if path[:1] == ("slots",) else path[:2] == ("schedule", "repeats")


def is_text(path: Steps) -> bool:
    """Return whether the scalar at *path* is the text as typed, such as a model called ``1.10`` or ``no``."""
    names = [step for step in path if isinstance(step, str)]
    return bool(names) and names[-1] in _TEXTS and not is_opaque(path)


def field_text(path: Steps) -> str:
    """Return a path as authors write it, such as ``budget.max_attempts`` or ``required_env[0]``."""
    return "".join(map(_step_text, path)).removeprefix(".")


def got(value: object) -> str:
    """Return what an author gave, cut short."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)[:40]
    return f"{kind_of(value)} without members" if value in ([], {}) else kind_of(value)


def unknown(path: Steps) -> str:
    """Return what is wrong with a key that nothing reads, with the nearest one that is."""
    name, known = str(path[-1]), _keys(path[:-1])
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {quoted(nearest[0])}?" if nearest else f"known are {', '.join(known)}"
    return f"is no key of a manifest here; {hint}"


def _keys(path: Steps) -> list[str]:
    """Return the keys that the mapping at *path* may have."""
    if not path:
        return list(SECTIONS)
    if path[-1] in _SHAPES:
        return list(_SHAPES[str(path[-1])].model_fields)
    return list((Candidate if "candidates" in path else Slot).model_fields)


def expected(path: Steps) -> str:
    """Return what the part at *path* has to be, in words."""
    if is_opaque(path) and len(path) > (5 if path[0] == "slots" else 2):
        return "a finite number" if path[0] == "slots" else f"{_COUNT} to {MAX_REPEATS}"
    name = path[-1] if path else ""
    if path[-2:-1] == ("required_env",):
        return "the name of an environment variable, such as OPENAI_API_KEY"
    if isinstance(name, int):
        return "a mapping with an id"
    if name in ("id", "slot_id"):
        is_slot = name == "slot_id" or "candidates" not in path
        return _ID_RULE.format(MAX_SLOT_ID if is_slot else MAX_CANDIDATE_ID)
    return _EXPECTED.get(name, "a text")


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_NAME.fullmatch(step) else f"[{quoted(step)}]"
