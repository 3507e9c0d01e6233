"""Injecting faults into the plugin itself: sessions with a fault in them, and with a guard taken out.

A fault, or what replaces a guard, is a small plugin file beside the tests. It is copied into the project of a test and
loaded by the sessions that are given it, so that nothing in the package knows of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

from crash_project import Done, Project, Session

from pytest_hillclimb.chaos.fault import Fault
from pytest_hillclimb.chaos.lane import graded
from pytest_hillclimb.chaos.scenarios import SCENARIOS

HERE = Path(__file__).parent
TABLE = ("scored", "errors", "recorded", "not tried", "pass ", "tokens", "retries", "cost")

NewChaosProject = Callable[[str], "ChaosProject"]

PRELUDE = '''
import json, pickle, shutil, sys
import pytest
from pytest_hillclimb import InfrastructureError

EVIDENCE = os.open(HOME / "evidence.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
PATIENCE_S = 20


def show(what):
    """Leave evidence that a fault has fired."""
    os.write(EVIDENCE, f"{what}\\n".encode())


def wait_until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.005)


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return {"pass": run.output == f"answer to {case.id}"}


def answer(case, **more):
    return {"output": f"answer to {case.id}", "usage": {"input_tokens": 3}, **more}

'''


class ChaosProject(Project):
    """A project whose sessions may be given faults, and may lack guards."""

    def plugins(self, *names: str) -> list[str]:
        """Return the options that load ``faults/<name>`` or ``guards_off/<name>``."""
        for name in names:
            shutil.copy(HERE / f"{name}.py", self.root)
        return [f"-p{name.rpartition('/')[2]}" for name in names]

    def forget_calls(self) -> None:
        """Count only the calls that are made from here on."""
        (self.root / "spend.log").unlink()

    @property
    def evidence(self) -> list[str]:
        """What faults have left behind."""
        file = self.root / "evidence.log"
        return file.read_text().splitlines() if file.exists() else []


def fault(scenario_id: str, phase: str = "") -> Fault:
    """Return the fault of a scenario, at a phase of the plugin's own."""
    scenario = next(each for each in SCENARIOS if each.id == scenario_id)
    phases = (phase,) if phase else scenario.phases
    return Fault(replace(scenario, phases=phases), 0, attempt=1, remaining=lambda: 60.0)


def broken(given: Fault, checks: Mapping[str, bool]) -> set[str]:
    """Return the checks that do not hold, all of them by their names; the fault must have fired and left evidence."""
    assert given.fired, f"{given} did not fire"
    assert given.evidence, f"{given} left no evidence"
    names = {name for name, held in checks.items() if not held}
    assert graded(given, checks).passed is (not names)
    return names


def end_or_kill(session: Session, within: float) -> Done | None:
    """Return how a session has ended, None if it had to be killed after *within* seconds."""
    end = monotonic() + within
    while session.running and monotonic() < end:
        sleep(0.02)
    if session.running:
        session.kill()
        return None
    return session.end()


def table(done: Done) -> list[str]:
    """Return those lines of a session's table that count, average and add up."""
    return [line for line in done.lines if line.startswith(TABLE)]


def warnings(done: Done) -> list[str]:
    return [line for line in done.lines if line.startswith("warning")]


def progress(project: Project) -> str:
    return (project.flow / "baseline/progress.txt").read_text()
