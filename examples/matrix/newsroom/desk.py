"""The desk at which an agent works: it carries out calls, and what it has seen happen is the evidence."""

from collections.abc import Mapping, Sequence
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
        self._calls = 0
        self._gives = {call: list(g) if isinstance(g, list) else [g] for call, g in world.get("gives", {}).items()}
        self._tells = world.get("tells", {})
        self._forbids = tuple(world.get("forbids", ()))
        self._restarts = world.get("restarts")

    def carry_out(self, call: str, sources: Sequence[int]) -> dict[str, Any]:
        """Return what comes of a call: its receipt, what it gives, and what the agent is told meanwhile.

        A call that is forbidden has a receipt too: that it was tried is evidence.
        """
        self._calls += 1
        receipt = self._note(call, sources)
        if call.startswith(self._forbids):
            return {"receipt": receipt.number, "refused": "You may not do that."}
        waiting = self._gives.get(call, [])
        reply: dict[str, Any] = {"receipt": receipt.number, "gives": waiting.pop(0) if waiting else "Done."}
        if self._tells.get("after") == self._calls:
            reply |= {"told": self._tells["text"], "told_receipt": self._note(TOLD).number}
        return reply

    @property
    def restarts_now(self) -> bool:
        """Whether this is the moment at which the agent's process is to be killed."""
        return self._calls == self._restarts

    def restarted(self) -> None:
        """Note that the agent's process was killed and started again."""
        self._restarts = None
        self._note(RESTART)

    def _note(self, what: str, sources: Sequence[int] = ()) -> Receipt:
        receipt = Receipt(len(self.receipts) + 1, what, tuple(sources))
        self.receipts.append(receipt)
        return receipt
