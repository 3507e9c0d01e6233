"""A project with an eval, run by pytest in processes of its own and looked at from outside.

Every call of the app writes a line to a file of its own (``calls``), so that tests count what was paid for and not only
what was recorded.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Key = tuple[str, int]
Slowness = Callable[[], float]

INI = """\
[pytest]
hillclimb_enabled = true
hillclimb_paths = evals
addopts = -p no:cacheprovider -p no:randomly -p no:hypothesispytest
"""

APPROVE = "--hillclimb-approve-harness"

PRELUDE = '''\
import asyncio, os, pathlib, threading, time

HOME = pathlib.Path(__file__).parent.parent
SPEND = os.open(HOME / "spend.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def spend(event, case, ctx):
    """Put on record that a call begins or has ended."""
    os.write(SPEND, f"{event} {case.id} {ctx.rep} {time.monotonic()} {os.getpid()}\\n".encode())

'''


IDLE_S = 0.3  # a session on an idle machine, or less
IDLE_EVAL = """
def pytest_hillclimb_load_cases(config):
    return [{"id": "a"}]


def pytest_hillclimb_run_case(case, ctx):
    return {"output": "x"}


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return True
"""


class NewProject(Protocol):
    def __call__(self, conftest: str) -> Project: ...


@dataclass
class Call:
    """A call of the app, as its own process noted it; times are monotonic."""

    key: Key
    pid: int
    began: float
    ended: float | None = None


@dataclass(frozen=True)
class Done:
    """A session that has ended. ``late`` is how long its process went on after the last signal, or since its start."""

    status: int
    text: str
    late: float

    @property
    def lines(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip()]

    def assert_refused(self, *words: str) -> None:
        """Assert that the session was refused in one line that has all *words*."""
        errors = [line for line in self.lines if line.startswith("ERROR: ")]
        assert self.status == 4, self.text
        assert len(errors) == 1, self.text
        assert "Traceback" not in self.text
        assert "INTERNALERROR" not in self.text
        for word in words:
            assert word in errors[0]


class Process(Protocol):
    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Return the exit status, minus the number of the signal that ended it, None while it runs."""


class Session:
    """A running session. Its output goes to a file: calls that were left behind must not keep a pipe open."""

    def __init__(self, process: Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._since = monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def interrupt(self) -> None:
        self._since = monotonic()
        os.kill(self.pid, signal.SIGINT)

    def kill(self) -> float:
        """Kill the process and return when it was surely still alive."""
        now = monotonic()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not self.running)
        return now

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for something that the session does."""
        end = monotonic() + 20
        while not condition():
            if monotonic() > end:
                self._give_up("what was waited for did not come")
            sleep(0.01)

    def _give_up(self, reason: str) -> None:
        """Fail the test, and say what the session was doing: pytest's faulthandler answers the signal."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGABRT)
        wait_for(lambda: not self.running)
        raise AssertionError(f"{reason}:\n{self.text}")

    def end(self, within: float = 40.0) -> Done:
        """Wait for the end of the process; it fails the test if that takes too long."""
        end = monotonic() + within
        while (status := self._process.poll()) is None:
            if monotonic() > end:
                self._give_up(f"the session did not end within {within} s")
            sleep(0.02)
        return Done(status, self.text, monotonic() - self._since)


class Forge:
    """Makes sessions quickly: a process that has imported everything forks one for each.

    They are processes like any other, and end as such. Each has a parent that notes its exit status in a file.
    """

    _SOURCE = textwrap.dedent(
        """
        import contextlib, gc, importlib, json, os, pkgutil, signal, sys, tempfile
        import pytest, pytest_hillclimb

        for module in pkgutil.walk_packages(pytest_hillclimb.__path__, "pytest_hillclimb."):
            importlib.import_module(module.name)
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            pytest.main(["--markers", "-c", os.devnull, "--rootdir", os.sep])  # loads all plugins
        gc.collect(), gc.freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for line in sys.stdin:
            job = json.loads(line)
            incoming, outgoing = os.pipe()
            if not os.fork():
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                child = os.fork()
                if not child:
                    break
                os.write(outgoing, b"%d" % child)
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                with open(job["status"] + ".new", "w") as file:
                    file.write(str(status))
                os.rename(job["status"] + ".new", job["status"])
                os._exit(0)
            os.close(outgoing)
            print(os.read(incoming, 20).decode(), flush=True)
            os.close(incoming)
        else:
            sys.exit()
        log = os.open(job["log"], os.O_WRONLY)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0), os.dup2(log, 1), os.dup2(log, 2)
        for number in (incoming, outgoing, log):
            os.close(number)
        os.environ.update(job["env"])
        tempfile.tempdir = None
        os.chdir(job["cwd"])
        sys.exit(pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *job["args"]]))
        """
    )

    def __init__(self) -> None:
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._SOURCE],
            env=clean_env(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, args: list[str], cwd: Path, env: dict[str, str], log: Path) -> Session:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        status = log.with_suffix(".status")
        job = {"args": args, "cwd": str(cwd), "env": env, "log": str(log), "status": str(status)}
        with self._lock:
            print(json.dumps(job), file=self._process.stdin, flush=True)
            pid = int(self._process.stdout.readline())
        return Session(Forged(pid, status), log)

    def close(self) -> None:
        self._process.communicate()


@dataclass(frozen=True)
class Forged:
    """A process of the forge."""

    pid: int
    status: Path

    def poll(self) -> int | None:
        try:
            return int(self.status.read_text())
        except FileNotFoundError:
            return None


def clean_env() -> dict[str, str]:
    """Return the environment without what would change how pytest runs."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_") and k not in ("CI", "FORCE_COLOR")}


class Project:
    def __init__(self, root: Path, forge: Forge, conftest: str) -> None:
        self.root = root
        self._forge = forge
        self.evals = root / "evals"
        self.evals.mkdir(parents=True)
        (root / "tmp").mkdir()
        (root / "pytest.ini").write_text(INI)
        (self.evals / "conftest.py").write_text(PRELUDE + textwrap.dedent(conftest))
        self.flow = root / ".claude/hillclimb/flow"
        self.env = {"TMPDIR": str(root / "tmp"), "COLUMNS": "400"}
        self._sessions = 0

    def start(
        self, *args: str, approve: bool = True, real: bool = False, wrapper: Iterable[str] = (), **env: str
    ) -> Session:
        """Start a session.

        :param approve: whether to approve the harness
        :param real: whether Python is to be started for it, rather than forked
        :param wrapper: a command that runs the one behind it
        """
        log = self._log()
        words = [*([APPROVE] if approve else []), *args]
        if not real and not wrapper:
            return self._forge.start(words, self.root, {**self.env, **env}, log)
        command = [*wrapper, sys.executable, "-m", "pytest", *words]
        every = {**clean_env(), **self.env, **env}
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=self.root, env=every, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )
        return Session(process, log)

    def run(self, *args: str, within: float = 40.0, **more: Any) -> Done:
        """Run a session to its end; *more* as in :meth:`start`."""
        return self.start(*args, **more).end(within)

    def _log(self) -> Path:
        self._sessions += 1
        log = self.root / f"session{self._sessions}.txt"
        log.touch()
        return log

    def write_cases(self, *cases: dict[str, Any]) -> None:
        (self.evals / "catalog.json").write_text(json.dumps(cases))

    def approve(self) -> None:
        """Approve the harness and run nothing."""
        done = self.run("--hillclimb-plan")
        assert done.status == 0, done.text

    def calls(self) -> list[Call]:
        """Return the calls that were made so far, by all sessions."""
        file = self.root / "spend.log"
        found: list[Call] = []
        for line in file.read_text().splitlines() if file.exists() else ():
            event, name, rep, when, pid = line.split()
            key = (name, int(rep))
            if event == "begin":
                found.append(Call(key, int(pid), float(when)))
            else:
                mine = [call for call in found if call.key == key and call.pid == int(pid) and call.ended is None]
                mine[0].ended = float(when)
        return found

    def wait_for_calls(self, session: Session, number: int) -> None:
        """Wait until *session* has made its calls up to this number."""
        session.wait_until(lambda: len(self.calls()) >= number)

    def rows(self, variant: str = "baseline") -> list[dict[str, Any]]:
        return read_rows(self.flow / variant / "results.jsonl")

    def errors(self, variant: str = "baseline") -> list[dict[str, Any]]:
        return read_rows(self.flow / variant / "errors.jsonl")

    def rescued(self) -> list[dict[str, Any]]:
        """Return the rows in files that were put into the temporary directory."""
        return [row for file in sorted((self.root / "tmp").glob("*.jsonl")) for row in read_rows(file)]


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of which every line must be whole."""
    if not file.exists():
        return []
    data = file.read_bytes()
    assert not data or data.endswith(b"\n"), f"{file.name} ends in the middle of a line"
    return [json.loads(line) for line in data.split(b"\n") if line]


def keys(rows: Iterable[dict[str, Any]]) -> list[Key]:
    return sorted((row["prompt_id"], row["rep"]) for row in rows)


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "what was waited for did not come"
        sleep(0.01)


def side_by_side(work: Callable[[T], R], items: Iterable[T], *, width: int = 3) -> list[R]:
    """Return what *work* gives for each item, some at a time: what takes long is other processes."""
    with ThreadPoolExecutor(width) as pool:
        return list(pool.map(work, items))


def snapshot(directory: Path) -> dict[str, tuple[Any, ...]]:
    """Return all that is below a directory, links not followed: kind, content, identity and time of change."""
    return {str(path.relative_to(directory)): _look(path) for path in _walk(directory)}


def contents(directory: Path) -> dict[str, object]:
    """Return names and contents below a directory, links not followed."""
    return {name: facts[:2] for name, facts in snapshot(directory).items()}


def _walk(directory: Path) -> Iterator[Path]:
    yield directory
    for folder, subdirectories, names in os.walk(directory):
        yield from (Path(folder, name) for name in (*subdirectories, *names))


def _look(path: Path) -> tuple[Any, ...]:
    status = path.lstat()
    if path.is_symlink():
        content: object = os.readlink(path)
    else:
        content = path.read_bytes() if path.is_file() else None
    return status.st_mode, content, status.st_ino, status.st_nlink, status.st_mtime_ns


def words_after(label: str, text: str) -> str:
    """Return what follows *label* in the first line that starts with it."""
    found = re.search(rf"^{label}\s+(.*)$", text, re.MULTILINE)
    assert found is not None, text
    return found[1]
