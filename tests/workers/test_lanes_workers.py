"""Lanes and canaries with workers: what is checked is the same, and nothing of it is taken for a result."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from chaos_harness import CONFTEST, IDS
from worker_project import NewWorkerProject, WorkerProject, assert_orderly, case, cases, keys, read_rows, summary

GRADER = """

import json


def see(where):
    with open(HOME / "seen.jsonl", "a") as file:
        file.write(json.dumps([where, HERE, sorted(os.environ)]) + "\\n")


see("import")


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    see("grade")
    return run.output != "" and (ref is None or ref == f"answer to {case.id}")
"""
SECRET = {"MODEL_API_KEY": "s3cret", "VENDOR_LOGIN": "s3cret"}
CANDIDATES = """
slots:
  - id: main
    candidates: [{id: one, model: m-1, qualification: {required_env: [VENDOR_LOGIN, NEVER_SET]}}]
"""


def lane_rows(
    project: WorkerProject, lane: str, name: str = "results", variant: str = "baseline"
) -> list[dict[str, Any]]:
    return read_rows(project.flow.with_name(f"flow.{lane}") / variant / f"{name}.jsonl")


def seen(project: WorkerProject) -> list[tuple[str, str, set[str]]]:
    lines = (project.root / "seen.jsonl").read_text().splitlines()
    return [(where, process, set(names)) for where, process, names in map(json.loads, lines)]


@pytest.mark.parametrize("lane", ["null", "oracle"])
def test_check_of_a_grader(new_project: NewWorkerProject, lane: str) -> None:
    project = new_project(GRADER)
    project.write_cases(*(case(f"c{n}", expected=f"answer to c{n}") for n in range(4)), case("open"))
    (project.root / "candidates.yaml").write_text(CANDIDATES)
    done = project.run("-n", "2", f"--hillclimb-{lane}", "--hillclimb-candidates=candidates.yaml", **SECRET)
    assert_orderly(done)
    assert done.status == 0, done.text
    assert summary(done) == ({"passed": 5} if lane == "null" else {"passed": 4, "skipped": 1})
    assert not project.calls(), "the app is not called"
    rows = lane_rows(project, lane)
    assert len(rows) == (5 if lane == "null" else 4)
    assert {row["meta"]["lane"] for row in rows} == {lane}
    assert not (project.flow / "baseline").exists()
    processes = {process for _, process, _ in seen(project)}
    assert {"one process", "worker gw0", "worker gw1"} == processes
    assert not any(names & {*SECRET} for _, _, names in seen(project))
    assert re.search(r"; without .*\bMODEL_API_KEY, .*\bVENDOR_LOGIN\b", done.text)


def test_null_check_of_a_later_round(new_project: NewWorkerProject) -> None:
    grader = """
    def pytest_hillclimb_grade_case(case, run, ref, ctx):
        return {"frozen 0": True, "frozen 1": False}[ref]
    """
    project = new_project(grader)
    project.write_cases(*cases(3))
    (project.flow / "baseline/ref").mkdir(parents=True)
    for n in range(2):
        (project.flow / f"baseline/ref/case-{n}").write_text(f"frozen {n}")
    done = project.run("-n", "2", "--hillclimb-null", "--hillclimb-variant=v3")
    assert done.status == 1
    assert summary(done) == {"passed": 1, "failed": 1, "error": 1}
    assert "null       the grader passed the empty answer in 1 of 2: case-0 rep0" in done.lines
    assert "null       1 execution could not be graded: case-2 rep0" in done.lines
    assert [row["meta"] for row in lane_rows(project, "null", "errors", "v3")] == [
        {"lane": "null", "classification": "infrastructure_failure"}
    ]


def test_chaos_lane(new_project: NewWorkerProject) -> None:
    project = new_project()
    (project.evals / "conftest.py").write_text(CONFTEST)
    (project.root / "unguarded").write_text("wake_race")
    first = project.run("--hillclimb-lane=chaos", "-k", "restart or stale")
    assert summary(first) == {"passed": 2, "deselected": 6}
    done = project.run("-n", "2", "--hillclimb-lane=chaos")
    assert_orderly(done)
    assert done.status == 1
    assert summary(done) == {"passed": 7, "failed": 1}
    assert "2 recorded, 6 to run" in done.text
    assert keys(lane_rows(project, "chaos")) == sorted((name, 0) for name in IDS)
    assert all(row["meta"]["lane"] == "chaos" for row in lane_rows(project, "chaos"))
    assert not (project.flow / "baseline").exists()
    spent = (project.root / "spend.log").read_text().split("\n")[:-1]
    assert sorted(line.split()[1] for line in spent) == sorted(IDS)
    (project.evals / "conftest.py").write_text(CONFTEST.replace("def pytest_hillclimb_inject", "def inject"))
    project.run("-n", "2", "--hillclimb-lane=chaos").assert_refused("pytest_hillclimb_inject_fault(...)")


def test_worker_that_dies_in_the_chaos_lane(new_project: NewWorkerProject) -> None:
    project = new_project()
    conftest = CONFTEST.replace('    state, final = "finished", True\n', "    os._exit(3)\n")
    (project.evals / "conftest.py").write_text(conftest)
    done = project.run("-n", "2", "--hillclimb-lane=chaos", "-k", "stale or delivery")
    assert done.status == 1
    [row] = lane_rows(project, "chaos", "errors")
    assert row["failure_class"] == "worker_lost"
    assert row["meta"] == {"lane": "chaos", "classification": "infrastructure_failure"}


def test_canary_that_cannot_be_measured(new_project: NewWorkerProject) -> None:
    project = new_project()
    given = cases(30, seconds=0.02)
    given[1]["do"] = "fail"
    project.write_cases(*given)
    done = project.run("-n", "2", "--hillclimb-canary=2")
    assert_orderly(done)
    assert done.status == 1
    reason = "--hillclimb-canary: of the first 2 executions, case-1 rep0 could not be measured (error)"
    assert f"stopped    {reason}" in done.lines
    assert "hillclimb: canary: if the first 2 executions, or what ends before" in done.text
    begun = len(project.calls())
    assert 2 <= begun <= 12, "what workers had been given by then"
    assert len(project.rows()) + len(project.errors()) == begun
    project.mend()
    again = project.run("--hillclimb-canary=2")
    assert again.status == 0
    assert summary(again) == {"passed": 30}


def test_canary_that_is_measured(new_project: NewWorkerProject) -> None:
    project = new_project()
    given = cases(12)
    given[0]["do"], given[11]["do"] = "miss", "fail"
    project.write_cases(*given)
    done = project.run("-n", "2", "--hillclimb-canary=3")
    assert done.status == 1
    assert summary(done) == {"passed": 10, "failed": 1, "error": 1}
    assert "stopped" not in done.text


def test_canary_whose_worker_dies(new_project: NewWorkerProject) -> None:
    project = new_project()
    given = cases(30, seconds=0.02)
    given[0]["do"] = "exit"
    project.write_cases(*given)
    done = project.run("-n", "2", "--hillclimb-canary=1")
    assert done.status == 1
    assert "of the first execution, case-0 rep0 could not be measured (worker_lost)" in done.text
    assert len(project.calls()) < 30
    assert len(project.rows()) + len(project.errors()) == len(project.calls())


def test_fixture_that_fails_before_a_canary(new_project: NewWorkerProject) -> None:
    fixture = """
    @pytest.fixture(autouse=True)
    def guard():
        raise OSError("not set up")
    """
    project = new_project(fixture)
    project.write_cases(*cases(30))
    done = project.run("-n", "2", "--hillclimb-canary=1")
    assert done.status == 1
    assert "could not be measured (a fixture failed)" in done.text
    assert not project.calls()
    assert summary(done)["error"] < 30


def test_remote_worker_has_no_credentials(new_project: NewWorkerProject) -> None:
    project = new_project(GRADER)
    project.write_cases(*cases(2))
    spec = "popen//env:MODEL_API_KEY=s3cret//id=far"
    done = project.run("--tx", spec, "-d", "--hillclimb-null")
    assert done.status == 0, done.text
    assert len(seen(project)) == 4
    assert not any("MODEL_API_KEY" in names for _, _, names in seen(project))
