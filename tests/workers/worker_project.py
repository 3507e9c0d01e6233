"""A project with an eval that workers of pytest-xdist run, in processes of its own, looked at from outside.

What the app does to a worker is written in the field ``do`` of its cases. Every call of the app writes a line to a file
of its own, so that tests count what was paid for and not only what was recorded.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Key = tuple[str, int]

INI = """\
[pytest]
hillclimb_enabled = true
hillclimb_paths = evals
addopts = -p no:cacheprovider
"""

APP = '''\
import asyncio, ctypes, os, pathlib, signal, threading, time
import pytest

HOME = pathlib.Path(__file__).parent.parent
HERE = f"worker {os.environ['PYTEST_XDIST_WORKER']}" if "PYTEST_XDIST_WORKER" in os.environ else "one process"
SPEND = os.open(HOME / "spend.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def spend(case, ctx):
    """Put on record that a call begins."""
    os.write(SPEND, f"{case.id.encode('ascii', 'replace').decode()}\\t{ctx.rep}\\t{os.getpid()}\\n".encode())


def die(how):
    if how == "exit":
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segv":
        ctypes.string_at(0)
    if how == "abort":
        os.abort()  # as the C library does when it is out of memory


def pytest_hillclimb_run_case(case, ctx):
    field = case.model_extra.get
    spend(case, ctx)
    if not (HOME / "mended").exists():
        time.sleep(field("seconds", 0))
        die(field("do"))
        if field("do") == "fail":
            raise ValueError("no answer")
    said = field("says", f"answer to {case.id}")
    return {"output": said, "transcript": [{"role": "assistant", "content": said}], "usage": {"input_tokens": 3}}


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return case.model_extra.get("do") != "miss"

'''

PLUGINS = ("hypothesispytest", "anyio", "randomly", "rerunfailures", "timeout", "pytest_cov")
"""Plugins that may be installed beside this one, by their entry points."""


@dataclass(frozen=True)
class Call:
    """A call of the app, and the process that made it."""

    key: Key
    pid: int


@dataclass(frozen=True)
class Done:
    """A session that has ended."""

    status: int
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def assert_refused(self, *words: str) -> None:
        """Assert that the session was refused in one line that has all *words*."""
        errors = [line for line in self.lines if line.startswith("ERROR: ")]
        assert self.status == 4, self.text
        assert len(errors) == 1, self.text
        assert_orderly(self)
        for word in words:
            assert word in errors[0]


class Session:
    """A running session, at the head of a process group of its own. Its output goes to a file: workers that outlive it
    must not keep a pipe open.
    """

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def signal(self, number: int) -> None:
        """Send a signal to the controller alone."""
        self.process.send_signal(number)

    def signal_all(self, number: int) -> None:
        """Send a signal to the controller and its workers, as a terminal does."""
        os.killpg(self.process.pid, number)

    def end(self, within: float = 60.0) -> Done:
        """Wait for the end of the controller; it fails the test if that takes too long."""
        try:
            status = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.signal_all(signal.SIGKILL)
            self.process.wait()
            status = None
        text = self.log.read_text(errors="replace")
        assert status is not None, f"the session did not end within {within} s:\n{text}"
        return Done(status, text)


class NewWorkerProject(Protocol):
    def __call__(self, more: str = "") -> WorkerProject: ...


class WorkerProject:
    """A project whose sessions load none of ``PLUGINS`` but those that are asked for.

    :param more: source that is added to the conftest
    """

    def __init__(self, root: Path, more: str = "") -> None:
        self.root = root
        self.evals = root / "evals"
        self.evals.mkdir(parents=True)
        (root / "tmp").mkdir()
        (root / "pytest.ini").write_text(INI)
        (self.evals / "conftest.py").write_text(APP + textwrap.dedent(more))
        self.flow = root / ".claude/hillclimb/flow"
        self._sessions = 0

    def start(self, *args: str, plugins: Iterable[str] = (), **env: str) -> Session:
        """Start a session that approves the harness."""
        self._sessions += 1
        ours = ("PYTEST_", "CI", "FORCE_COLOR", "COV_", "TMPDIR")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        without = [f"-pno:{name}" for name in PLUGINS if name not in plugins]
        command = [sys.executable, "-m", "pytest", "--hillclimb-approve-harness", *without, *args]
        log = self.root / f"session{self._sessions}.txt"
        return Session(command, self.root, {**kept, "TMPDIR": str(self.root / "tmp"), "COLUMNS": "200", **env}, log)

    def run(self, *args: str, within: float = 60.0, plugins: Iterable[str] = (), **env: str) -> Done:
        return self.start(*args, plugins=plugins, **env).end(within)

    def write_cases(self, *cases: dict[str, Any]) -> None:
        (self.evals / "catalog.json").write_text(json.dumps(cases))

    def mend(self) -> None:
        """Let the app do no harm, and not take its time, from here on."""
        (self.root / "mended").touch()

    def calls(self) -> list[Call]:
        """Return the calls that were begun so far, by all sessions."""
        file = self.root / "spend.log"
        lines = [line.split("\t") for line in file.read_text().splitlines()] if file.exists() else []
        return [Call((name, int(rep)), int(pid)) for name, rep, pid in lines]

    def calls_by_key(self) -> Counter[Key]:
        """Return how often each execution was begun, by all sessions."""
        return Counter(call.key for call in self.calls())

    def pids(self) -> set[int]:
        """Return the processes that have made calls."""
        return {call.pid for call in self.calls()}

    def rows(self, variant: str = "baseline") -> list[dict[str, Any]]:
        return read_rows(self.flow / variant / "results.jsonl")

    def errors(self, variant: str = "baseline") -> list[dict[str, Any]]:
        return read_rows(self.flow / variant / "errors.jsonl")

    def assert_complete(self, *ids: str, reps: int = 1, variant: str = "baseline") -> None:
        """Assert that each execution has one row, its trace, and in the baseline its reference."""
        rows = self.rows(variant)
        assert keys(rows) == sorted((name, rep) for name in ids for rep in range(reps))
        for row in rows:
            trace = self.flow / variant / f"traces/{row['prompt_id']}_rep{row['rep']}.json"
            assert trace.read_text().startswith("["), trace
            assert variant != "baseline" or (self.flow / "baseline/ref" / row["prompt_id"]).exists()


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a file; a line that is still being written is left out."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]


def keys(rows: Iterable[dict[str, Any]]) -> list[Key]:
    return sorted((row["prompt_id"], row["rep"]) for row in rows)


def case(name: str, do: str = "ok", **more: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"question {name}", "do": do, **more}


def cases(number: int, **more: Any) -> list[dict[str, Any]]:
    return [case(f"case-{n}", **more) for n in range(number)]


def ids(given: Iterable[dict[str, Any]]) -> list[str]:
    return [each["id"] for each in given]


def assert_orderly(done: Done) -> None:
    """Assert that a session has ended without any sign of something that was not expected."""
    for word in ("INTERNALERROR", "Traceback", "AssertionError", "Exception ignored"):
        assert word not in done.text, done.text


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_end(pids: Iterable[int], seconds: float = 20.0) -> None:
    """Wait until none of the processes is alive."""
    wait_for(lambda: not any(is_alive(pid) for pid in pids), seconds)


def summary(done: Done) -> dict[str, int]:
    """Return the counts of pytest's last line, such as ``{"passed": 3, "error": 1}``."""
    last = [line for line in done.lines if re.search(r" in [\d.]+s", line)][-1]
    return {word.rstrip("s") if word == "errors" else word: int(n) for n, word in re.findall(r"(\d+) ([a-z]+)", last)}


def wait_for(condition: Callable[[], object], seconds: float = 40.0) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "what was waited for did not come"
        sleep(0.005)


def side_by_side(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return what *work* gives for each item, two at a time: what takes long is other processes."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, items))
