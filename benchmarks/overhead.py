"""What recording costs: trivial executions against plain parametrized items.

A plain item is an empty test function. An execution runs and grades a case in a plain def and leaves a row, a trace of
two turns and, in the baseline, its reference; a later variant reads that reference. Every execution has a case of its
own, so that nothing is shared between them. Concurrency is the default.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.figures import ratio, row
from benchmarks.sessions import Eval, Plain, Project, interleave

FEW, MANY = 2_000, 8_000


def measure(directory: Path, *, quick: bool) -> None:
    few = Project(directory / "few", cases=FEW, plain=FEW)
    frozen = few.new_flow()
    Eval("the baseline of v1", few, FEW, lambda: frozen).run()

    def with_references() -> Path:
        flow = few.new_flow()
        shutil.copytree(frozen / "baseline" / "ref", flow / "baseline" / "ref")
        return flow

    plain = Plain(f"{FEW} plain items", few)
    baseline = Eval(f"{FEW} executions, baseline", few, FEW, few.new_flow)
    later = Eval(f"{FEW} executions, v1", few, FEW, with_references, variant="v1")
    samples = interleave([plain, baseline, later], rounds=3 if quick else 7)

    many = Project(directory / "many", cases=MANY, plain=MANY)
    baseline_of_many = Eval(f"{MANY} executions, baseline", many, MANY, many.new_flow)
    plain_of_many = Plain(f"{MANY} plain items", many)
    samples |= interleave([plain_of_many, baseline_of_many], rounds=1 if quick else 3)

    seconds = {label: [sample.seconds for sample in found] for label, found in samples.items()}
    for label, values in seconds.items():
        row(label, values)
    ratio("baseline against plain items", seconds[baseline.label], seconds[plain.label], 1.4)
    ratio("v1 against plain items", seconds[later.label], seconds[plain.label], 1.4)
    ratio(f"{MANY} against {FEW}, baseline", seconds[baseline_of_many.label], seconds[baseline.label], 4.2)
    plainly = f"{MANY} against {FEW}, plain items, for orientation"
    ratio(plainly, seconds[plain_of_many.label], seconds[plain.label], 4.2)
