"""A desk at which something goes wrong on purpose, for ``--hillclimb-lane chaos``."""

import signal
from collections.abc import Mapping
from typing import Any

from newsroom.desk import Desk
from pytest_hillclimb.chaos.fault import Fault

SUPPORTED = ("restart", "duplicate_delivery", "interaction_timeout")
KILLED_AFTER = {"turn": 2, "result": 5}  # calls; the routine of the chaos cases has five
WITHHELD = {"question": "ask editor", "approval": "ask for approval"}


class FaultyDesk(Desk):
    """Lets the fault strike at its phase, and tells it what shows that it did."""

    def __init__(self, fault: Fault) -> None:
        super().__init__({"restarts": KILLED_AFTER.get(fault.phase)})
        self._fault = fault
        self._final = fault.phase == "finalisation"

    def replies(self, said: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the lines that answer a call: none when the reply is withheld, several when it is sent again."""
        reply = self.carry_out(said)
        if said["call"] == WITHHELD.get(self._fault.phase):
            self.pending.append({"id": said["id"], "call": said["call"], "owner": "editor"})
            self._fault.fire(said["id"])
            return []
        if self._fault.kind == "duplicate_delivery" and len(self.receipts) == 2 and not self.duplicates:
            copies = self._fault.parameters["copies"]
            self._fault.fire(said["id"])
            if self._fault.phase == "event":
                return [reply] * copies
            for _ in range(copies - 1):
                self.carry_out(said)
        return [reply]

    def take(self, answer: str) -> None:
        """Take the answer, unless the process is to be killed before it counts."""
        if self._final:
            self.restart_due, self._final = True, False
        else:
            super().take(answer)

    def restarted(self, process_id: int, status: int) -> None:
        """Note that the process was killed, if it was."""
        if status == -signal.SIGKILL:
            self._fault.fire(f"pid-{process_id}")
        super().restarted(process_id, status)
