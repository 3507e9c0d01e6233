"""An older state is put back before a resume: finished work stays finished, and another harness does not resume it."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from chaos_project import ChaosProject, NewChaosProject, broken, fault, progress
from crash_project import keys

from pytest_hillclimb.chaos.fault import Fault

EVAL = """
def pytest_hillclimb_load_cases(config):
    return [{"id": "finished"}, {"id": "torn"}]


def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    return answer(case)
"""


def older(project: ChaosProject) -> bytes:
    """Return the rows of a session that is killed in the middle of writing its second one."""
    first, second = sorted((project.flow / "baseline/results.jsonl").read_bytes().splitlines(), key=_is_torn)
    return first + b"\n" + second[: len(second) // 2]


def put_back(project: ChaosProject, given: Fault, rows: bytes) -> None:
    """Put an older state in place, with the lock file of a process that is dead."""
    variant = project.flow / "baseline"
    owner = json.loads((variant / ".lock").read_text())["pid"]
    (variant / "results.jsonl").write_bytes(rows)
    (variant / "progress.txt").write_text("[baseline] 0/2 done (0 ok, 0 failed), 1s elapsed\n")
    (variant / ".lock").write_text(json.dumps({"pid": owner, "host": "elsewhere", "since": "2020-01-01"}))
    given.fire(f"lock of pid {owner}")


def stale(project: ChaosProject, given: Fault, *off: str) -> dict[str, bool]:
    """Resume from an older state; then once more, from the same state, with another harness."""
    options = project.plugins(*off)
    project.run()
    state = older(project)
    put_back(project, given, state)
    resumed = project.run(*options, approve=False)
    calls, rows, told = Counter(call.key[0] for call in project.calls()), _rows(project), progress(project)
    put_back(project, given, state)
    with (project.evals / "conftest.py").open("a") as file:
        file.write("# another harness\n")
    changed = project.run(*options, approve=False)
    return {
        "a lock of the dead holds nobody up": resumed.status == 0,
        "finished work is not run again": calls["finished"] == 1,
        "unfinished work is": calls["torn"] == 2,
        "one final row per execution": rows == [("finished", 0), ("torn", 0)],
        "the progress is that of now": told.startswith("[baseline] 1/1 done"),
        "another harness is refused": changed.status == 4 and "the harness has changed" in changed.text,
        "and nothing is called for it": len(project.calls()) == calls.total(),
    }


def _is_torn(line: bytes) -> bool:
    return b'"torn"' in line


def _rows(project: ChaosProject) -> list[tuple[str, int]]:
    """Return the rows that can be read, of a file that holds a torn line."""
    lines = (project.flow / "baseline/results.jsonl").read_bytes().splitlines()
    return keys(json.loads(line) for line in lines if line.endswith(b"}"))


def test_stale_checkpoint(new_project: NewChaosProject) -> None:
    given = fault("chaos-stale-checkpoint")
    assert broken(given, stale(new_project(EVAL), given)) == set()


@pytest.mark.parametrize(
    ("off", "names"),
    [
        (
            "no_resume",
            {"finished work is not run again", "one final row per execution", "the progress is that of now"},
        ),
        (
            "believes_the_lock_file",
            {
                "a lock of the dead holds nobody up",
                "unfinished work is",
                "one final row per execution",
                "the progress is that of now",
            },
        ),
        ("no_gate", {"another harness is refused", "and nothing is called for it"}),
    ],
)
def test_stale_checkpoint_that_is_believed(new_project: NewChaosProject, off: str, names: set[str]) -> None:
    given = fault("chaos-stale-checkpoint")
    assert broken(given, stale(new_project(EVAL), given, f"guards_off/{off}")) == names
