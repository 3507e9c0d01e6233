"""The desk at which an agent works: it carries out calls, and what it has seen happen is the evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOLD, RESTART = "told", "restart"


@dataclass(frozen=True)
class Receipt:
    """One thing that has happened at the desk.

    ``what`` is a call such as ``write notice``, or ``told`` or ``restart``; ``sources`` are the numbers of the earlier
    receipts that the agent named for it.
    """

    number: int
    what: str
    sources: tuple[int, ...] = ()


class Desk:
    """Carries out the calls of one execution.

    :param world: the ``input`` of a case; the catalog says what it may hold
    """

    def __init__(self, world: Mapping[str, Any]) -> None:
        self.receipts: list[Receipt] = []
        self.answer: str | None = None
        self.restart_due = False
        """Whether the agent's process is to be killed now."""
        self.pending: list[dict[str, str]] = []
        """Calls whose reply has not come, each with the one who owes it."""
        self.duplicates: list[str] = []
        """Ids of calls that were delivered again, and had been carried out."""
        self._replies: dict[str, dict[str, Any]] = {}
        self._gives = {call: list(g) if isinstance(g, list) else [g] for call, g in world.get("gives", {}).items()}
        self._tells = world.get("tells", {})
        self._forbids = tuple(world.get("forbids", ()))
        self._restarts = world.get("restarts")

    def replies(self, said: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the lines that answer an agent's call."""
        return [self.carry_out(said)]

    def carry_out(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Return what comes of a call: its receipt, what it gives, and what the agent is told meanwhile.

        A call that is forbidden has a receipt too: that it was tried is evidence. One that is delivered again, by its
        id, is not carried out again.
        """
        if said["id"] in self._replies:
            self.duplicates.append(said["id"])
            return self._replies[said["id"]]
        call, receipt = said["call"], self._note(said["call"], tuple(said["sources"]))
        reply: dict[str, Any] = {"id": said["id"], "receipt": receipt.number}
        if call.startswith(self._forbids):
            reply["refused"] = "You may not do that."
        else:
            waiting = self._gives.get(call, [])
            reply["gives"] = waiting.pop(0) if waiting else "Done."
        self._replies[said["id"]] = reply
        if self._tells.get("after") == len(self._replies):
            reply |= {"told": self._tells["text"], "told_receipt": self._note(TOLD).number}
        self.restart_due = self._restarts == len(self._replies)
        return reply

    def take(self, answer: str) -> None:
        """Take the agent's answer, which ends its work."""
        self.answer = answer

    def restarted(self, process_id: int, status: int) -> None:
        """Note that the agent's process was killed; it is started again."""
        self.restart_due = False
        self._note(RESTART)

    def _note(self, what: str, sources: tuple[int, ...] = ()) -> Receipt:
        receipt = Receipt(len(self.receipts) + 1, what, sources)
        self.receipts.append(receipt)
        return receipt
