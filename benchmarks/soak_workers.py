"""A soak: 1,000 executions at ``-n 4`` while workers are killed at random moments, then resumed until complete.

``python benchmarks/soak_workers.py [--seed N]``, in the environment that has the plugin. Ends with status 1, and says
what is wrong, unless every execution has one row, its trace and its reference, and was paid for again only where a kill
found it in flight.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

CASES, REPS, WORKERS = 500, 2, 4
KILLS = (14, 6)  # in the first session and in the first resume
SESSIONS = 5
SLACK_S = 0.3  # an answer that was given this shortly before a kill may not have reached the controller

Key = tuple[str, int]

CONFTEST = """
import os, pathlib, random, time

SPEND = os.open(pathlib.Path(__file__).parents[1] / "spend.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def spend(event, case, ctx):
    os.write(SPEND, f"{event} {case.id} {ctx.rep} {os.getpid()} {time.monotonic()}\\n".encode())


def pytest_hillclimb_load_cases(config):
    return [{"id": f"case-{n}", "prompt": f"Question {n}?"} for n in range(CASES)]


def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    time.sleep(random.Random(ctx.seed).uniform(0, 0.03))
    spend("end", case, ctx)
    said = f"answer to {case.id}: " + "\\u00e9\\u2028" * 500
    return {"output": said, "transcript": [{"role": "assistant", "content": said}]}


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return {"pass": case.id in run.output}
"""


@dataclass
class Call:
    """A call of the app as its process noted it."""

    pid: int
    ended: float | None = None


class Soak:
    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self.chance = chance
        self.killed: dict[int, float] = {}
        (root / "evals").mkdir()
        (root / "tmp").mkdir()
        (root / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
        (root / "evals/conftest.py").write_text(CONFTEST.replace("CASES", str(CASES)))
        self.variant = root / "flow/baseline"

    def session(self, kills: int) -> int:
        """Run one session, and kill so many of its workers; return its exit status."""
        options = ["--hillclimb-flow=flow", f"--hillclimb-reps={REPS}", "--hillclimb-approve-harness"]
        command = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "hillclimb", "-q", "evals", *options]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TMPDIR": str(self.root / "tmp")}
        with (self.root / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                [*command, "-n", str(WORKERS), f"--max-worker-restart={4 * sum(KILLS)}"],
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        while kills and process.poll() is None:
            sleep(self.chance.uniform(0.1, 0.6))
            kills -= self.kill_one(process.pid)
        status = process.wait()
        if "INTERNALERROR" in self.output:
            sys.exit(f"{self.output}\nthe session broke")
        return status

    @property
    def output(self) -> str:
        return (self.root / "output.txt").read_text(errors="replace")

    def kill_one(self, controller: int) -> bool:
        """Kill a worker that has made calls; return whether there was one."""
        made_calls = {call.pid for calls in self.calls().values() for call in calls}
        workers = sorted(pid for pid in made_calls if _parent(pid) == controller)
        if not workers:
            return False
        pid = self.chance.choice(workers)
        self.killed[pid] = monotonic()
        os.kill(pid, signal.SIGKILL)
        return True

    def calls(self) -> dict[Key, list[Call]]:
        found: dict[Key, list[Call]] = defaultdict(list)
        file = self.root / "spend.log"
        for line in file.read_text().splitlines() if file.exists() else ():
            event, case, rep, pid, when = line.split()
            if event == "begin":
                found[case, int(rep)].append(Call(int(pid)))
            else:
                next(call for call in found[case, int(rep)] if call.pid == int(pid)).ended = float(when)
        return found

    def flaws(self) -> list[str]:
        """Return what is wrong with the records, one line each."""
        planned = {(f"case-{n}", rep) for n in range(CASES) for rep in range(REPS)}
        rows = [(row["prompt_id"], row["rep"]) for row in _rows(self.variant / "results.jsonl")]
        flaws = [f"{key} has no row" for key in planned - set(rows)]
        flaws += [f"{key} was not planned" for key in set(rows) - planned]
        flaws += [f"{len(rows) - len(set(rows))} executions have more than one row"] * (len(rows) > len(set(rows)))
        for case, rep in set(rows):
            answer = f"answer to {case}: " + "\u00e9\u2028" * 500
            trace = json.loads((self.variant / f"traces/{case}_rep{rep}.json").read_text(encoding="utf-8"))
            flaws += [f"{case} rep{rep}: trace"] * (trace != [{"role": "assistant", "content": answer}])
            flaws += [f"{case}: reference"] * ((self.variant / "ref" / case).read_text(encoding="utf-8") != answer)
        lost = _rows(self.variant / "errors.jsonl")
        flaws += [
            f"an errors row that is no lost worker's: {row}" for row in lost if row["failure_class"] != "worker_lost"
        ]
        flaws += [f"{len(lost)} executions were lost by {len(self.killed)} kills"] * (len(lost) > len(self.killed))
        return flaws + self.paid_twice()

    def paid_twice(self) -> list[str]:
        """Return the calls that were made again although no kill had found them in flight."""
        return [
            f"{key} was paid for again; its worker {'lived' if call.pid not in self.killed else 'had answered'}"
            for key, calls in self.calls().items()
            for call in calls[:-1]
            if call.pid not in self.killed or (call.ended is not None and call.ended < self.killed[call.pid] - SLACK_S)
        ]


def _rows(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def _parent(pid: int) -> int | None:
    """Return the parent of a process that is alive."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return int(parent) if state != "Z" else None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=20260)
    chance = random.Random(parser.parse_args().seed)
    started = monotonic()
    with tempfile.TemporaryDirectory(prefix="hillclimb-soak-") as directory:
        soak = Soak(Path(directory), chance)
        for number in range(SESSIONS):
            status = soak.session(KILLS[number] if number < len(KILLS) else 0)
            rows, lost = (len(_rows(soak.variant / name)) for name in ("results.jsonl", "errors.jsonl"))
            print(
                f"session {number + 1}: status {status}, {rows} rows, {lost} lost, {len(soak.killed)} kills", flush=True
            )
            if status == 0:
                break
        flaws = soak.flaws()
        again = sum(len(calls) - 1 for calls in soak.calls().values())
        if flaws or status != 0:
            sys.exit("\n".join([soak.output, *flaws[:20], f"{len(flaws)} flaws, last status {status}"]))
    print(f"rows exact, {again} calls paid for again, all of them in flight when their worker was killed")
    print(f"{monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
