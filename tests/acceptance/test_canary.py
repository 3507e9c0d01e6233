"""A canary: the first executions run alone, and the others only if all of these could be measured."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from eval_project import HOOKS, Project

from pytest_hillclimb.engine.outcome import Outcome
from pytest_hillclimb.wiring.canary import Canary

WATCH = """
IN_FLIGHT, LOCK, MEETING = set(), threading.Lock(), threading.Barrier(5)


def watch(case):
    with LOCK:
        IN_FLIGHT.add(case.id)
        with open(ROOT / "flights.jsonl", "a") as file:
            file.write(json.dumps(sorted(IN_FLIGHT)) + "\\n")
    if case.model_extra.get("meets"):
        MEETING.wait(30)
    time.sleep(case.model_extra.get("sleep", 0))


def land(case):
    with LOCK:
        IN_FLIGHT.discard(case.id)
"""
CALL = """
    watch(case)
    try:
        act(case)
    finally:
        land(case)
"""
HOOKS_WATCHED = (
    "import json\n"
    + HOOKS.replace("\n    act(case)\n", CALL).replace('\n    time.sleep(case.model_extra.get("sleep", 0))\n', "\n")
).replace("\n\ndef pytest_hillclimb_run_case", f"\n{WATCH}\n\ndef pytest_hillclimb_run_case")
BROKEN = {"raises": "the key is wrong"}
STOPPED = "stopped    --hillclimb-canary: of the first "


@pytest.fixture
def watched(project: Project) -> Project:
    project.write("evals/conftest.py", HOOKS_WATCHED)
    return project


def many(count: int, start: str = "c", **fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return cases ``c0``, ``c1``, ... that take a moment each, with further fields for single ones."""
    return [{"id": f"{start}{n}", "sleep": 0.01, **fields.get(f"{start}{n}", {})} for n in range(count)]


def runs(project: Project) -> list[str]:
    """Return the cases that the app was called for, in that order."""
    return [line.split()[0] for line in project.spent()]


def flights(project: Project) -> list[list[str]]:
    """Return, for each call of the app, which ones were in flight when it began."""
    return [json.loads(line) for line in (project.path / "flights.jsonl").read_text().splitlines()]


def stopped(result: pytest.RunResult) -> str:
    [line] = [line for line in result.outlines if line.startswith("stopped ")]
    return str(line)


def test_one_that_cannot_be_measured_stops_the_run(watched: Project) -> None:
    watched.cases(*many(40, c0=BROKEN))
    result = watched.approved("--hillclimb-canary=1", "--hillclimb-concurrency=32", "-rs")
    assert result.ret == 1
    assert result.parseoutcomes() == {"errors": 1, "skipped": 39}
    assert runs(watched) == ["c0"]
    reason = "--hillclimb-canary: of the first execution, c0 rep0 could not be measured (error)"
    assert stopped(result) == f"stopped    {reason}"
    result.stdout.fnmatch_lines(["not tried  39", f"SKIPPED * not run: {reason}"])
    assert [row["prompt_id"] for row in watched.errors()] == ["c0"]
    watched.cases(*many(40))
    assert watched.approved("--hillclimb-canary=1").parseoutcomes() == {"passed": 40}, "it can be run again"


def test_next_one_waits_for_what_a_canary_means(watched: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Canary.judge

    def slowly(canary: Canary, outcome: Outcome) -> str | None:
        time.sleep(0.1)
        return judge(canary, outcome)

    monkeypatch.setattr(Canary, "judge", slowly)
    watched.cases(*many(4, c0=BROKEN))
    watched.approved("--hillclimb-canary=1")
    assert runs(watched) == ["c0"]


def test_what_was_paid_for_is_kept(watched: Project) -> None:
    watched.cases(*many(20, c2={**BROKEN, "sleep": 0.1}))
    result = watched.approved("--hillclimb-canary=4", "--hillclimb-concurrency=32")
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 3, "errors": 1, "skipped": 16}
    assert sorted(runs(watched)) == ["c0", "c1", "c2", "c3"]
    assert watched.slots() == [("c0", 0), ("c1", 0), ("c3", 0)]
    assert "of the first 4 executions, c2 rep0" in stopped(result)


def test_the_others_run_at_full_concurrency_afterwards(watched: Project) -> None:
    meets = {f"c{n}": {"meets": True} for n in range(2, 12)}
    watched.cases(*many(12, c0={"sleep": 0.1}, **meets))
    result = watched.approved("--hillclimb-canary=2", "--hillclimb-concurrency=5")
    assert result.ret == 0
    assert "stopped" not in result.stdout.str()
    assert watched.slots() == sorted((f"c{n}", 0) for n in range(12))
    before, after = flights(watched)[:2], flights(watched)[2:]
    assert {name for names in before for name in names} == {"c0", "c1"}
    assert not {name for names in after for name in names} & {"c0", "c1"}
    assert max(map(len, after)) == 5


def test_a_grade_that_misses_is_measured(watched: Project) -> None:
    watched.cases(*many(5, c0={"grade": False}))
    assert watched.approved("--hillclimb-canary=1").parseoutcomes() == {"failed": 1, "passed": 4}


@pytest.mark.parametrize("broken", ["c2", None])
def test_more_than_there_is(watched: Project, broken: str | None) -> None:
    watched.cases(*many(4, **({broken: BROKEN} if broken else {})))
    result = watched.approved("--hillclimb-canary=50")
    assert result.parseoutcomes() == ({"passed": 3, "errors": 1} if broken else {"passed": 4})
    assert result.ret == (1 if broken else 0)
    assert len(runs(watched)) == 4


def test_recorded_executions_are_no_canaries(watched: Project) -> None:
    watched.cases(*many(10, c3=BROKEN))
    watched.approved("--hillclimb-limit=2")
    result = watched.approved("--hillclimb-canary=2", "--hillclimb-concurrency=8")
    assert result.ret == 1
    assert sorted(runs(watched)) == ["c0", "c1", "c2", "c3"]
    assert result.parseoutcomes() == {"passed": 3, "errors": 1, "skipped": 6}


MARKS = """

def pytest_collection_modifyitems(items):
    marks = {"c0": pytest.mark.skip, "c1": pytest.mark.skipif(True, reason="so"), "c2": pytest.mark.xfail(run=False)}
    for item in items:
        if (case := item.nodeid.split("::")[1]) in marks:
            item.add_marker(marks[case])
        elif case == "c4":
            item.add_marker(pytest.mark.skipif(False, reason="not so"))


@pytest.fixture(autouse=True)
def guard(request):
    if "::c3::" in request.node.nodeid:
        pytest.skip("by a fixture")
"""


def test_skipped_executions_hand_on_their_turn(watched: Project) -> None:
    watched.write("evals/conftest.py", HOOKS_WATCHED + MARKS)
    watched.cases(*many(12, c5={"skips": "by the app"}, c6=BROKEN))
    result = watched.approved("--hillclimb-canary=2", "--hillclimb-concurrency=8")
    assert result.ret == 1
    assert "of the first 2 executions, c6 rep0" in stopped(result)
    assert sorted(name for name in runs(watched) if name != "c3") == ["c4", "c5", "c6"]
    assert watched.slots() in ([("c4", 0)], [("c3", 0), ("c4", 0)])


def test_fixture_that_fails_stops_the_run(watched: Project) -> None:
    fixture = MARKS[MARKS.index("@pytest.fixture") :].replace("c3", "c0").replace("pytest.skip", "raise OSError")
    watched.write("evals/conftest.py", f"{HOOKS_WATCHED}\n\n{fixture}")
    watched.cases(*many(8))
    result = watched.approved("--hillclimb-canary=1")
    assert result.ret == 1
    assert stopped(result) == f"{STOPPED}execution, c0 rep0 could not be measured (a fixture failed)"
    assert result.parseoutcomes() == {"errors": 1, "skipped": 7}
    assert runs(watched) == []
    assert watched.approved().parseoutcomes() == {"errors": 1, "passed": 7}, "without a canary it is that item alone"


@pytest.mark.parametrize("option", ["-x", "--maxfail=2", "--stepwise"])
def test_with_what_stops_pytest_itself(watched: Project, option: str) -> None:
    watched.cases(*many(20, c9=BROKEN, c10=BROKEN))
    watched.approved("--collect-only")
    result = watched.run("--hillclimb-canary=3", "--hillclimb-concurrency=4", option)
    assert result.ret in (1, 2)
    assert "stopped    --hillclimb-canary" not in result.stdout.str()
    assert all(int(name[1:]) < 15 for name in runs(watched)), "never further ahead than the concurrency"
    assert max(map(len, flights(watched))) <= 4
    assert {name for names in flights(watched)[:3] for name in names} == {"c0", "c1", "c2"}


@pytest.mark.parametrize("option", ["-x", "--maxfail=2"])
def test_broken_with_what_stops_pytest_itself(watched: Project, option: str) -> None:
    watched.cases(*many(20, c1=BROKEN))
    result = watched.approved("--hillclimb-canary=2", "--hillclimb-concurrency=4", option)
    assert result.ret == 1
    assert sorted(runs(watched)) == ["c0", "c1"]
    assert stopped(result).startswith(f"{STOPPED}2 executions, c1 rep0")


def test_over_several_catalogs(watched: Project) -> None:
    watched.cases(*many(3))
    watched.cases(*many(6, "d", d1=BROKEN), file="evals/more/catalog.json")
    result = watched.approved("--hillclimb-canary=5", "--hillclimb-concurrency=8")
    assert result.ret == 1
    assert sorted(runs(watched)) == ["c0", "c1", "c2", "d0", "d1"]
    assert result.parseoutcomes() == {"passed": 4, "errors": 1, "skipped": 4}


def test_within_a_selection(watched: Project) -> None:
    watched.cases(*many(9, c0=BROKEN, c5=BROKEN))
    watched.approved("--collect-only")
    result = watched.run("--hillclimb-canary=1", "-k", "c4 or c5 or c6")
    assert result.parseoutcomes() == {"passed": 2, "errors": 1, "deselected": 6}
    assert "stopped" not in result.stdout.str()


def test_below_a_cost_ceiling(watched: Project) -> None:
    watched.ini(hillclimb_enabled="true", hillclimb_prices="m in=1 out=1")
    usage = {"usage": {"input_tokens": 1_000_000, "output_tokens": 0}, "model": "m"}
    watched.cases(*({**case, **usage} for case in many(8)))
    args = ("--hillclimb-model=m", "--hillclimb-max-cost=3.5", "--hillclimb-trial-cost=1", "--hillclimb-canary=2")
    result = watched.approved(*args)
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 3, "skipped": 5}
    assert len(runs(watched)) == 3
    assert re.search(r"ceiling +3\.0000 of 3\.5 USD charged; it kept 5 executions", result.stdout.str())


def test_said_before_anything_is_run(watched: Project) -> None:
    watched.cases(*many(3))
    result = watched.approved("--hillclimb-canary=2", "--hillclimb-plan")
    assert "hillclimb: canary: the first 2 executions alone; the others only if these can be" in result.stdout.str()
    assert runs(watched) == []
