"""The rules that decide how a message is understood; one file per round in ``app/rules/``."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

RULES_DIRECTORY = Path(__file__).parent / "rules"


@dataclass(frozen=True)
class Rules:
    """What changes from round to round."""

    topics: dict[str, list[str]]
    """Topic -> phrases that point to it; a phrase matches when all its words are in the message."""
    first: list[str]
    """Topics that win over all others as soon as one of their phrases matches."""
    ignore_case: bool
    order_number: str
    """Regular expression that finds the order number."""
    return_days: int
    last_day_counts: bool


@cache
def load_rules(name: str) -> Rules:
    """Return the rules of a round, such as ``baseline`` or ``v1``."""
    path = RULES_DIRECTORY / f"{name}.yaml"
    if not path.exists():
        raise FileNotFoundError(
            f"there are no rules named {name!r}: copy an older round's file to app/rules/{name}.yaml"
        )
    return Rules(**yaml.safe_load(path.read_text(encoding="utf-8")))
