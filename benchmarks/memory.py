"""Peak memory: transcripts of 50 KB against small ones, which must be let go of once they are recorded."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import ratio, row
from benchmarks.sessions import Eval, Project, interleave

EXECUTIONS, TURNS = 2_000, 10

_CONFTEST = """
def pytest_hillclimb_run_case(case, ctx):
    content = f"{{case.prompt}} ".ljust({chars}, "-")
    turns = [{{"role": "assistant", "content": f"{{number}} {{content}}"}} for number in range({turns})]
    return {{"output": "done", "transcript": turns}}


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return True
"""


def measure(directory: Path, *, quick: bool) -> None:
    small, large = (_session(directory, f"{kb} KB", kb * 1000 // TURNS) for kb in (1, 50))
    samples = interleave([small, large], rounds=1 if quick else 3)
    peaks = {label: [sample.peak_mb for sample in found] for label, found in samples.items()}
    for label, values in peaks.items():
        row(label, values, "MB")
    ratio("large transcripts against small ones", peaks[large.label], peaks[small.label], 1.1)


def _session(directory: Path, size: str, chars: int) -> Eval:
    conftest = _CONFTEST.format(chars=chars, turns=TURNS)
    project = Project(directory / size, cases=EXECUTIONS, conftest=conftest)
    return Eval(f"{EXECUTIONS} executions with transcripts of {size}", project, EXECUTIONS, project.new_flow)
