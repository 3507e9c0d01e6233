"""Pytest sessions as processes: the projects they run in, and what each took.

Sessions load no plugins but those of pytest and, where it is measured, this one: the start-up of others would flatter
the ratios. Bytecode is cached beside the projects and warm, whatever the environment says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import perf_counter

Row = Mapping[str, object]

TRIVIAL = """
from pytest_hillclimb import Run, Turn


def pytest_hillclimb_run_case(case, ctx):
    text = f"an answer to {case.prompt}"
    return Run(
        output=text,
        transcript=[Turn(role="user", content=case.prompt), Turn(role="assistant", content=text)],
        usage={"input_tokens": 12, "output_tokens": 34},
    )


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return {"pass": case.expected in run.output}
"""

_PLAIN = """
import pytest


@pytest.mark.parametrize("number", range({count}))
def test_plain(number):
    pass
"""

_numbers = count()


@dataclass(frozen=True)
class Sample:
    """What one process took."""

    seconds: float
    peak_mb: float


class Project:
    """A directory with an eval of *cases* cases in ``evals``, and *plain* parametrized tests in ``plain``."""

    def __init__(self, root: Path, *, cases: int = 0, plain: int = 0, conftest: str = TRIVIAL) -> None:
        self.root = root
        (root / "plain").mkdir(parents=True)
        (root / "evals").mkdir()
        (root / "pytest.ini").write_text("[pytest]\n")
        (root / "plain" / "test_plain.py").write_text(_PLAIN.format(count=plain))
        (root / "evals" / "conftest.py").write_text(conftest)
        catalog = ({"id": f"case-{n}", "prompt": f"question {n}", "expected": str(n)} for n in range(cases))
        _write_lines(root / "evals" / "catalog.jsonl", catalog)

    def new_flow(self) -> Path:
        """Return the path of a flow directory that was never used; old ones stay, as deleting slows what follows."""
        return self.root / f"flow-{next(_numbers)}"

    def flow_with(self, rows: Iterable[Row]) -> Path:
        """Return a flow directory in which another session has recorded *rows*."""
        flow = self.new_flow()
        (flow / "baseline").mkdir(parents=True)
        _write_lines(flow / "baseline" / "results.jsonl", rows)
        return flow

    def run(self, arguments: Sequence[str], *, all_plugins: bool = False) -> Sample:
        """Run pytest in a process of its own; leave the benchmark if it fails."""
        environment = {**os.environ, **({} if all_plugins else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})}
        command = [sys.executable, "-m", "pytest", *arguments]
        with (self.root / "output.txt").open("wb") as output:
            started = perf_counter()
            process = subprocess.Popen(command, cwd=self.root, env=environment, stdout=output, stderr=output)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said = (self.root / "output.txt").read_text()
            sys.exit(f"{said}\n{' '.join(command)} ended with {process.returncode}")
        return Sample(seconds, usage.ru_maxrss / 1024)


@dataclass(frozen=True)
class Plain:
    """A session of plain tests, with this plugin only if *all_plugins* of the environment are loaded."""

    label: str
    project: Project
    options: tuple[str, ...] = ()
    all_plugins: bool = False

    def run(self) -> Sample:
        return self.project.run([*self.options, "plain"], all_plugins=self.all_plugins)


@dataclass(frozen=True)
class Eval:
    """A session of the eval. ``flow`` gives the directory of each run, and is called before the clock starts.

    ``rows`` is how many rows the variant must hold afterwards.
    """

    label: str
    project: Project
    rows: int
    flow: Callable[[], Path]
    options: tuple[str, ...] = ()
    variant: str = "baseline"

    def run(self) -> Sample:
        flow = self.flow()
        chosen = [f"--hillclimb-flow={flow}", f"--hillclimb-variant={self.variant}", "--hillclimb-approve-harness"]
        sample = self.project.run(["-p", "hillclimb", *chosen, *self.options, "evals"])
        found = (flow / self.variant / "results.jsonl").read_bytes().count(b"\n")
        if found != self.rows:
            sys.exit(f"{self.label}: expected {self.rows} rows, found {found} in {flow}")
        return sample


def prepare(directory: Path) -> None:
    """Make this process's environment, which sessions inherit, the same everywhere; fill the caches of bytecode."""
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        os.environ.pop(name, None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(directory / "bytecode")
    project = Project(directory / "warm-up", cases=1, plain=1)
    Plain("plain", project, all_plugins=True).run()
    Eval("eval", project, 1, project.new_flow).run()


def interleave(sessions: Sequence[Plain | Eval], rounds: int) -> dict[str, list[Sample]]:
    """Run every session *rounds* times, in turns; return the samples by label."""
    samples: dict[str, list[Sample]] = {session.label: [] for session in sessions}
    for _ in range(rounds):
        for session in sessions:
            samples[session.label].append(session.run())
    return samples


def _write_lines(path: Path, values: Iterable[Row]) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
