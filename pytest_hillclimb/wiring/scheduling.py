"""What pytest-xdist's schedulers need when workers die over evals."""

from __future__ import annotations

from typing import Any


def mended(scheduler: Any) -> Any:
    """Return a scheduler that, if it hands out whole scopes, never has the item run again that its worker died of."""
    if hasattr(scheduler, "assigned_work"):
        scheduler.__class__ = type("MendedScheduling", (_ScopesOfTheLost, type(scheduler)), {})
    return scheduler


class _ScopesOfTheLost:
    """What becomes of the scopes of a worker that dies, under ``--dist`` loadscope, loadfile and loadgroup.

    By itself pytest-xdist has the item run again that the worker died of, which pays for it time and again, and waits
    for ever if the scopes that remain are small.
    """

    assigned_work: dict[Any, dict[str, dict[str, bool]]]
    registered_collections: dict[Any, Any]

    def remove_node(self, node: Any) -> str | None:
        """Give up the item that was being run; hand on what is left of the others."""
        work = self.assigned_work[node]
        lost = next(((unit, item) for unit in work.values() for item, done in unit.items() if not done), None)
        if lost is not None:
            lost[0][lost[1]] = True
        for scope in [scope for scope, unit in work.items() if all(unit.values())]:
            del work[scope]
        super().remove_node(node)  # type: ignore[misc]
        return lost[1] if lost is not None else None

    def schedule(self) -> None:
        """Give each worker two scopes to start with, also one that is started in place of another."""
        super().schedule()  # type: ignore[misc]
        for node in self.assigned_work:
            self._reschedule(node)

    def _reschedule(self, node: Any) -> None:
        if node in self.registered_collections:  # else it is only starting
            super()._reschedule(node)  # type: ignore[misc]
