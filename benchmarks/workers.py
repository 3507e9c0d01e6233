"""What workers cost: trivial executions under ``pytest -n 2`` against plain items under the same."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import ratio, row
from benchmarks.sessions import Eval, Plain, Project, interleave

COUNT = 2_000
WORKERS = ("-p", "xdist", "-n", "2")


def measure(directory: Path, *, quick: bool) -> None:
    project = Project(directory / "project", cases=COUNT, plain=COUNT)
    plain = Plain(f"{COUNT} plain items, -n 2", project, options=WORKERS)
    evals = Eval(f"{COUNT} executions, baseline, -n 2", project, COUNT, project.new_flow, options=WORKERS)
    samples = interleave([plain, evals], rounds=2 if quick else 5)
    seconds = {label: [sample.seconds for sample in found] for label, found in samples.items()}
    for label, values in seconds.items():
        row(label, values)
    ratio("executions against plain items, -n 2", seconds[evals.label], seconds[plain.label], 1.1)
