"""All workers collect the same items, whatever order hooks give them in and whatever happens in the meantime."""

from __future__ import annotations

import json

from worker_project import NewWorkerProject, assert_orderly, cases, ids, keys, summary

UNORDERED = """
PROMPTS = HOME / "prompts"


class Expectation:  # what no row and no wire can hold
    def __init__(self, text):
        self.text, self.lock = text, threading.Lock()

    def met_by(self, answer):
        return answer == self.text


def pytest_hillclimb_load_cases(config):
    names = {entry.name for entry in os.scandir(PROMPTS)}
    (HOME / f"order of {HERE}").write_text(" ".join(names))
    return [
        {
            "id": name,
            "prompt": (PROMPTS / name).read_text(),
            "tags": ["a", "b"],
            "expected": Expectation(f"answer to {name}"),
            "do": "exit" if name == "case-7" else "ok",
            "seconds": 0.02,
        }
        for name in names
    ]


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return case.expected.met_by(run.output)
"""


def test_unordered_hooks_and_a_restart(new_project: NewWorkerProject) -> None:
    project = new_project(UNORDERED)
    (project.root / "prompts").mkdir()
    names = ids(cases(40))
    for name in names:
        (project.root / "prompts" / name).write_text(f"question {name}")
    done = project.run("-n4", PYTHONHASHSEED="random")
    assert_orderly(done)
    assert "Different tests" not in done.text
    assert summary(done) == {"passed": 39, "error": 1}, done.text
    project.assert_complete(*(name for name in names if name != "case-7"))
    orders = [file.read_text() for file in project.root.glob("order of *")]
    assert len(set(orders)) > 1, "nothing was unordered"

    project.mend()
    done = project.run("-n4", "--hillclimb-reps=2", PYTHONHASHSEED="random")
    assert_orderly(done)
    assert summary(done) == {"passed": 80}
    assert done.text.count("recorded") >= 1
    project.assert_complete(*names, reps=2)
    assert set(project.calls_by_key().values()) == {1, 2}
    assert [key for key, count in project.calls_by_key().items() if count > 1] == [("case-7", 0)]


LANDING = """
if HERE != "one process" and (HOME / "land").exists():
    with (HOME / ".claude/hillclimb/flow/baseline/results.jsonl").open("a") as file:
        row = '{"prompt_id": "case-5", "rep": 0, "grade": {"score": 1}, "status": "ok"}'
        file.write(row + "\\n")
"""


def test_rows_that_land_while_workers_start(new_project: NewWorkerProject) -> None:
    project = new_project(LANDING)
    given = cases(6)
    project.write_cases(*given)
    assert project.run("-n2", "--hillclimb-case=case-0").status == 0
    (project.root / "land").touch()
    done = project.run("-n2")
    done.assert_refused("another session", "run again")
    assert len(project.calls()) == 1

    (project.root / "land").unlink()
    done = project.run("-n2")
    assert_orderly(done)
    assert done.status == 0
    assert summary(done) == {"passed": 6}
    assert keys(project.rows())[:2] == [("case-0", 0), ("case-1", 0)]
    assert sorted(project.calls_by_key()) == [(name, 0) for name in ids(given) if name != "case-5"]


LANDING_LATER = """
if HERE not in ("one process", "worker gw0", "worker gw1"):
    # A worker that is started in place of another, when rows are there already.
    (HOME / "restarted").write_text((HOME / ".claude/hillclimb/flow/baseline/results.jsonl").read_text())
"""


def test_rows_that_land_before_a_restart(new_project: NewWorkerProject) -> None:
    project = new_project(LANDING_LATER)
    given = cases(12, seconds=0.05)
    given[8]["do"] = "kill"
    project.write_cases(*given)
    done = project.run("-n2", "--hillclimb-limit=11")
    assert_orderly(done)
    assert "Different tests" not in done.text
    assert summary(done) == {"passed": 10, "error": 1}
    assert [json.loads(line)["prompt_id"] for line in (project.root / "restarted").read_text().splitlines()]
    assert len(project.calls()) == 11


CONFIGURED = """
def pytest_addoption(parser):
    parser.addoption("--answer")

def pytest_sessionstart(session):
    global ANSWER
    ANSWER = session.config.getoption("--answer")

def pytest_hillclimb_run_case(case, ctx):
    return {"output": ANSWER}

def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return run.output == "yes"
"""


def test_conftests_are_initial_in_workers_too(new_project: NewWorkerProject) -> None:
    project = new_project(CONFIGURED)
    project.write_cases(*cases(2))
    done = project.run("-n2", "--answer=yes", "--max-worker-restart=0")
    assert done.status == 0, done.text
