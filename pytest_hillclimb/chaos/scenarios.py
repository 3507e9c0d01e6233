"""The eight chaos scenarios: what goes wrong, and what must hold all the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_hillclimb.model.case import Case

TAG = "chaos"
"""The tag of every case of the chaos lane."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of fault, and the invariant that it must not break."""

    id: str
    """Id of its case, such as ``chaos-restart``."""
    fault: str
    """Kind of the fault, such as ``restart``."""
    invariant: str
    """What must hold although the fault has fired."""
    description: str
    """What the fault does, for whoever injects it."""
    phases: tuple[str, ...]
    """Moments at which the fault may strike; a seed chooses one. Never empty."""
    parameters: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)
    """Further choices by name, of each of which a seed takes one; sizes are in bytes."""


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "chaos-restart",
        "restart",
        "exactly one owner resumes and finalises the execution",
        "The process dies in the middle of the run and is started again.",
        ("turn", "result", "finalisation"),
    ),
    Scenario(
        "chaos-duplicate-delivery",
        "duplicate_delivery",
        "every effect happens once",
        "The same event or call is delivered more than once.",
        ("event", "call"),
        {"copies": (2, 3)},
    ),
    Scenario(
        "chaos-trace-interruption",
        "trace_interruption",
        "the outcome does not depend on the trace",
        "The sink of the trace fails or vanishes.",
        ("open", "write", "close"),
        {"reason": ("no_space", "unwritable", "vanished")},
    ),
    Scenario(
        "chaos-trace-truncation",
        "trace_truncation",
        "a trace over its cap is marked as truncated and holds up nothing",
        "The trace is larger than its cap.",
        ("write",),
        {"cap_bytes": (1024,), "trace_bytes": (10 * 1024, 100 * 1024)},
    ),
    Scenario(
        "chaos-stale-checkpoint",
        "stale_checkpoint",
        "finished work does not become active again",
        "An older state is put back before the run is resumed.",
        ("running", "finished"),
        {"revisions_back": (1, 2)},
    ),
    Scenario(
        "chaos-retry-exhaustion",
        "retry_exhaustion",
        "attempts end at their bound, with an owner who is named",
        "Every attempt fails.",
        ("call", "result"),
        {"error": ("overloaded", "connection", "timeout")},
    ),
    Scenario(
        "chaos-interaction-timeout",
        "interaction_timeout",
        "the wait stays visible and owned until its deadline, and is never reported as done",
        "An answer that the run waits for never arrives.",
        ("question", "approval"),
    ),
    Scenario(
        "chaos-wake-race",
        "wake_race",
        "one wake wins, and keeps the input of all",
        "Two resumptions of one run arrive at the same moment.",
        ("waiting", "finished"),
    ),
)


def scenario_cases(scenarios: Iterable[Scenario] = SCENARIOS) -> list[Case]:
    """Return the scenarios as cases, in their order, tagged ``chaos`` and with the kind of their fault."""
    return [
        Case(
            id=scenario.id,
            prompt=scenario.description,
            expected=scenario.invariant,
            tags=(TAG, scenario.fault),
            meta={"fault": scenario.fault},
        )
        for scenario in scenarios
    ]
