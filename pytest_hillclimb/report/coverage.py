"""What a cycle of the balanced schedule covers, as lines for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_hillclimb.report.terminal import one_line, plural
from pytest_hillclimb.schedule.coverage import Coverage

_LISTED = 20
_WIDTH = 80


def coverage_lines(coverage: Coverage) -> list[str]:
    """Return the coverage of a cycle: whether each of its goals is met, then what is never brought together."""
    goals = (
        ("every slot is used in every rotation", coverage.every_slot_each_rotation),
        ("every tier is used in every rotation", coverage.every_tier_each_rotation),
        ("every candidate is used in the cycle", coverage.every_candidate_in_cycle),
        ("every case meets every slot", coverage.every_case_meets_every_slot),
        ("every case meets every candidate", coverage.every_case_meets_every_candidate),
    )
    gaps = [f"{_name(case)} never meets {_names(missed)}" for case, missed in coverage.gaps.items()]
    apart = [f"no case meets both {_name(one)} and {_name(other)}" for one, other in coverage.unmet_slots]
    return [
        f"coverage   of a cycle of {plural(coverage.rotations, 'rotation')}",
        *(f"           {'yes' if met else 'no':<3}  {goal}" for goal, met in goals),
        *_capped("gap", gaps),
        *_capped("apart", apart),
    ]


def _capped(label: str, texts: Sequence[str]) -> list[str]:
    left = len(texts) - _LISTED
    shown = [*texts[:_LISTED], *([f"... and {left} more"] if left > 0 else [])]
    return [f"{label:<10} {text}" for text in shown]


def _names(names: Sequence[str]) -> str:
    left = len(names) - _LISTED
    return ", ".join(map(_name, names[:_LISTED])) + (f" and {left} more" if left > 0 else "")


def _name(name: str) -> str:
    return one_line(name, _WIDTH)
