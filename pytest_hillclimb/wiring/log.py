"""The log of a session: every execution that was selected, and what is known to have come of it."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from pytest_hillclimb.engine.outcome import Outcome
from pytest_hillclimb.schedule.plan import Execution, Key


@dataclass(slots=True)
class Entry:
    """A selected execution and its outcome, None while there is none."""

    nodeid: str
    execution: Execution
    outcome: Outcome | None = None
    skipped: bool = False
    """Whether it was to be skipped from the start, or pytest skipped the item, by a mark or in a fixture."""


class RunLog:
    """The selected executions in the order of their items."""

    def __init__(self, selected: Iterable[tuple[str, Execution]] = ()) -> None:
        self._entries = {execution.key: Entry(nodeid, execution) for nodeid, execution in selected}
        self._by_nodeid = {entry.nodeid: entry for entry in self._entries.values()}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> list[Entry]:
        """Every selected execution."""
        return list(self._entries.values())

    def unrecorded(self, rows: Container[Key]) -> list[Execution]:
        """Return the executions without a row on disk: what is to be run."""
        return [entry.execution for key, entry in self._entries.items() if key not in rows]

    def note(self, key: Key, outcome: Outcome) -> bool:
        """Note the outcome of an execution; return False if it had one before or was not selected."""
        entry = self._entries.get(key)
        if entry is None or entry.outcome is not None:
            return False
        entry.outcome = outcome
        return True

    def at(self, nodeid: str) -> Entry | None:
        """Return the entry of an item, None if it is none of an execution that was selected."""
        return self._by_nodeid.get(nodeid)

    def get(self, key: Key) -> Entry | None:
        """Return the entry of an execution, None if it was not selected."""
        return self._entries.get(key)

    @property
    def earlier(self) -> list[bool | None]:
        """The verdicts of what was recorded before the session."""
        return [e.outcome.passed for e in self._entries.values() if e.outcome is not None and e.outcome.earlier]

    @property
    def missed(self) -> list[Entry]:
        """The scored executions whose grade did not pass."""
        return [e for e in self._entries.values() if e.outcome is not None and e.outcome.passed is False]

    @property
    def untried(self) -> list[Entry]:
        """The executions that have neither a row nor a reason for having none."""
        return [e for e in self._entries.values() if e.outcome is None and not e.skipped]

    @property
    def skipped(self) -> int:
        """How many executions were skipped and have no outcome."""
        return sum(e.outcome is None and e.skipped for e in self._entries.values())
