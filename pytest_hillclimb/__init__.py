"""pytest-hillclimb: evals of LLM applications as pytest items, with rows that can be trusted.

The public names are loaded on first use, because pytest imports this package in every session of every project in
which the plugin is installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_hillclimb.chaos.fault import Fault
    from pytest_hillclimb.engine.app import Context
    from pytest_hillclimb.errors import HillclimbError, InfrastructureError
    from pytest_hillclimb.model.case import Attachment, Case
    from pytest_hillclimb.model.grade import Grade
    from pytest_hillclimb.model.run import Run, Turn

__version__ = "0.1.0"

_HOMES = {
    "Attachment": "model.case",
    "Case": "model.case",
    "Context": "engine.app",
    "Fault": "chaos.fault",
    "Grade": "model.grade",
    "HillclimbError": "errors",
    "InfrastructureError": "errors",
    "Run": "model.run",
    "Turn": "model.run",
}

__all__ = [
    "Attachment",
    "Case",
    "Context",
    "Fault",
    "Grade",
    "HillclimbError",
    "InfrastructureError",
    "Run",
    "Turn",
    "__version__",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
