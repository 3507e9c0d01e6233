"""Run the benchmarks: ``python -m benchmarks [--quick] [NAME ...]``, in the environment that has the plugin.

Every figure is of a whole process, from its start to its exit. What is compared is run in turns (A B A B ...), so that
a machine that slows down slows both. Nothing is asserted: the goals stand beside the figures.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path
from time import perf_counter

import pytest

import pytest_hillclimb
from benchmarks import inactive, memory, overhead, resume, waves, workers
from benchmarks.sessions import prepare

MODULES = (overhead, waves, workers, resume, memory, inactive)
BENCHMARKS = {module.__name__.rpartition(".")[2]: module for module in MODULES}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, allow_abbrev=False)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: half the time, rougher figures")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    print(f"pytest-hillclimb in {Path(pytest_hillclimb.__file__).parent}")
    print(f"Python {platform.python_version()}, pytest {pytest.__version__}, {os.cpu_count()} CPUs", flush=True)
    started = perf_counter()
    with tempfile.TemporaryDirectory(prefix="hillclimb-benchmarks-") as directory:
        prepare(Path(directory))
        for name in arguments.names or BENCHMARKS:
            module = BENCHMARKS[name]
            print(f"\n{name}: {module.__doc__.splitlines()[0]}", flush=True)
            module.measure(Path(directory) / name, quick=arguments.quick)
    print(f"\n{perf_counter() - started:.0f} s in all")


if __name__ == "__main__":
    main()
