"""What a resume costs: reading many recorded rows, and reporting executions that are recorded.

Rows are read in sessions that select one recorded case of ten by ``--hillclimb-case``, so that nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import difference, ratio, row
from benchmarks.sessions import Eval, Plain, Project, Row, interleave

FEW, MANY, CASES = 2_000, 20_000, 10


def measure(directory: Path, *, quick: bool) -> None:
    reading = Project(directory / "reading", cases=CASES)
    flows = {count: reading.flow_with(_rows(count)) for count in (FEW, MANY)}
    one_case = ("--hillclimb-case=case-0",)
    few = Eval(f"one recorded case of {FEW} rows", reading, FEW, lambda: flows[FEW], one_case)
    many = Eval(f"one recorded case of {MANY} rows", reading, MANY, lambda: flows[MANY], one_case)

    items = Project(directory / "items", cases=FEW, plain=FEW)
    done = items.new_flow()
    recorded = Eval(f"{FEW} recorded executions", items, FEW, lambda: done)
    recorded.run()
    plain = Plain(f"{FEW} plain items", items)

    samples = interleave([few, many, plain, recorded], rounds=4 if quick else 9)
    seconds = {label: [sample.seconds for sample in found] for label, found in samples.items()}
    for label, values in seconds.items():
        row(label, values)
    difference(f"{MANY} rows against {FEW}", seconds[many.label], seconds[few.label], 150)
    ratio("recorded executions against plain items", seconds[recorded.label], seconds[plain.label], 1.0)


def _rows(count: int) -> Iterator[Row]:
    for number in range(count):
        yield {
            "prompt_id": f"case-{number % CASES}",
            "rep": number // CASES,
            "prompt": "Which of the tents can two people carry on a hike of several days, and what does it weigh?",
            "tags": ["facts", "tents"],
            "model": "a-model-20250101",
            "usage": {"input_tokens": 1234, "output_tokens": 234, "cache_read_input_tokens": 0},
            "stop_reason": "end_turn",
            "status": "ok",
            "latency_s": 3.142,
            "grade": {"pass": 1, "coverage": 0.75, "win": 0.5},
            "explanation": {"coverage": "names the tent and its weight, but not for how many people it is meant"},
            "passed": True,
        }
