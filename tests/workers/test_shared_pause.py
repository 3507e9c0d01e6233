"""A wait that a server asks of one worker, and the others."""

from __future__ import annotations

import json

from worker_project import NewWorkerProject, assert_orderly, case, cases, keys

BUSY = """

import json


class Busy(Exception):
    status_code = 429
    response = {"headers": {"retry-after-ms": "3000"}}


run_case = pytest_hillclimb_run_case


def pytest_hillclimb_run_case(case, ctx):
    with open(HOME / "times.jsonl", "a") as file:
        file.write(json.dumps([case.id, ctx.attempt, time.time()]) + "\\n")
    if case.id == "busy" and ctx.attempt == 1:
        raise Busy("too many requests")
    return run_case(case, ctx)
"""


def test_a_pause_holds_for_every_worker_and_is_told(new_project: NewWorkerProject) -> None:
    project = new_project(BUSY)
    given = [case("busy"), *cases(7, seconds=0.3)]
    project.write_cases(*given)
    done = project.run("-n2")
    assert_orderly(done)
    assert done.status == 0
    assert keys(project.rows()) == sorted((each["id"], 0) for each in given)
    begun = {(name, attempt): at for name, attempt, at in map(json.loads, (project.root / "times.jsonl").open())}
    asked = begun.pop(("busy", 1))
    assert begun.pop(("busy", 2)) - asked >= 2.9
    during = [name for (name, _), at in begun.items() if asked + 0.2 < at < asked + 2.9]
    assert during == [], "only what had started, or was starting, went on"
    assert any("a server asks to wait" in line for line in done.lines)
