"""Bringing an agent to the desk: one process for each execution, which sees the credentials of its candidate alone."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from newsroom.agent import MISCONFIGURED
from newsroom.desk import Desk
from pytest_hillclimb import Case, Context, InfrastructureError, Turn

AGENT = Path(__file__).with_name("agent.py")
GRACE_S = 1.0
PATIENCE_S = 0.2  # how long an agent may wait for a reply that is withheld


@dataclass
class Assignment:
    """One case at one desk, and what has come of it so far."""

    case: Case
    ctx: Context
    desk: Desk
    model: str | None = None
    usage: Counter[str] = field(default_factory=Counter)
    transcript: list[Turn] = field(default_factory=list)
    """What has happened between prompt and answer, as turns."""

    def carry_out(self) -> None:
        """Let the agent work until it has given its answer, or waits for a reply that does not come.

        :raises InfrastructureError: when its process ends before, which says nothing about the candidate
        """
        while self.desk.answer is None and not self.desk.pending:
            with started(self.ctx.environment(), self.ctx.remaining()) as process:
                status = self._work_with(process)
            if self.desk.restart_due:
                self.desk.restarted(process.pid, status)
                self._note("the process was killed")
            elif self.desk.answer is None and not self.desk.pending:
                raise self._lost(status)

    def _work_with(self, process: subprocess.Popen[str]) -> int:
        """Reply to what a process writes, and return its exit status."""
        write(process, self._task())
        for line in process.stdout:
            said = json.loads(line)
            self.usage.update(said.get("usage", {}))
            if "call" in said:
                self._reply(process, said)
            elif "says" in said:
                self._take(process, said["says"])
            else:
                self.model = said["model"]
                self._note(f"{self.model} has started; it sees {', '.join(said['sees'])}")
        return process.wait()

    def _task(self) -> dict[str, Any]:
        done = [(receipt.number, receipt.what) for receipt in self.desk.receipts]
        about = {"case": self.case.id, "prompt": self.case.prompt, "model": self.ctx.model}
        return {**about, "rep": self.ctx.rep, "attempt": self.ctx.attempt, "done": done}

    def _reply(self, process: subprocess.Popen[str], said: Mapping[str, Any]) -> None:
        name, replies = said["call"], self.desk.replies(said)
        self.transcript.append(Turn(role="tool_call", name=name, content=json.dumps({"sources": said["sources"]})))
        self.transcript += [Turn(role="tool_result", name=name, content=json.dumps(reply)) for reply in replies]
        if self.desk.restart_due:
            process.kill()
        elif self.desk.pending:
            threading.Timer(PATIENCE_S, process.kill).start()
        else:
            for reply in replies:
                write(process, reply)

    def _take(self, process: subprocess.Popen[str], answer: str) -> None:
        self.desk.take(answer)
        if self.desk.restart_due:
            process.kill()
        else:
            write(process, {"taken": True})

    def _note(self, text: str) -> None:
        self.transcript.append(Turn(role="system", content=text))

    def _lost(self, status: int) -> InfrastructureError:
        """Return the failure of a process that ended too early, with what it has cost until then."""
        code, retryable = ("agent_misconfigured", False) if status == MISCONFIGURED else ("agent_lost", True)
        error = InfrastructureError(code, retryable, f"the agent's process gave no answer, and exit status {status}")
        error.model, error.usage = self.model, dict(self.usage)
        return error


@contextmanager
def started(environment: Mapping[str, str], seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Start an agent's process, which is gone at the end, and soon after so many seconds at the latest."""
    command = [sys.executable, "-I", "-S", str(AGENT)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        # Later than the deadline itself, which has then ended the execution as the timeout that it is.
        timer = threading.Timer(min(seconds + GRACE_S, threading.TIMEOUT_MAX), process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            process.kill()
            with suppress(BrokenPipeError):  # what it had not read any more
                process.stdin.close()


def write(process: subprocess.Popen[str], line: Mapping[str, Any]) -> None:
    """Write one line to a process; one that is gone will be noticed by its silence."""
    with suppress(BrokenPipeError):
        print(json.dumps(line), file=process.stdin, flush=True)
