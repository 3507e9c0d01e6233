"""Executions that wait: whole sessions against the time of whole waves, ceil(executions / in flight) x 0.25 s.

The sessions include the start of pytest, of which a session with one plain item gives an idea.
"""

from __future__ import annotations

from math import ceil
from pathlib import Path

from benchmarks.figures import ratio, row
from benchmarks.sessions import Eval, Plain, Project, interleave

EXECUTIONS, SECONDS = 400, 0.25
GOALS = {32: 1.12, 128: 1.3}

_GRADE = """

def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return True
"""
BLOCKING = f"""
import time


def pytest_hillclimb_run_case(case, ctx):
    time.sleep({SECONDS})
    return {{"output": "done", "transcript": [{{"role": "assistant", "content": "done"}}]}}
{_GRADE}"""
ASYNC = f"""
import asyncio


async def pytest_hillclimb_run_case(case, ctx):
    await asyncio.sleep({SECONDS})
    return {{"output": "done", "transcript": [{{"role": "assistant", "content": "done"}}]}}
{_GRADE}"""


def measure(directory: Path, *, quick: bool) -> None:
    projects = {
        "async": Project(directory / "async", cases=EXECUTIONS, conftest=ASYNC, plain=1),
        "blocking": Project(directory / "blocking", cases=EXECUTIONS, conftest=BLOCKING),
    }
    sessions: dict[tuple[str, int], Eval] = {
        (kind, width): Eval(
            f"{EXECUTIONS} executions of {SECONDS} s, {kind}, {width} in flight",
            project,
            EXECUTIONS,
            project.new_flow,
            (f"--hillclimb-concurrency={width}",),
        )
        for width in GOALS
        for kind, project in projects.items()
    }
    start = Plain("a session of one plain item", projects["async"])
    samples = interleave([start, *sessions.values()], rounds=2 if quick else 4)
    seconds = {label: [sample.seconds for sample in found] for label, found in samples.items()}
    for label, values in seconds.items():
        row(label, values)
    for (kind, width), session in sessions.items():
        waves = ceil(EXECUTIONS / width) * SECONDS
        ratio(f"{kind}, {width} in flight, against {waves:g} s", seconds[session.label], waves, GOALS[width])
