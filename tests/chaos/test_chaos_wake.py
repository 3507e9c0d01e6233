"""Two sessions resume one flow at the same moment: one does, the other is told who it is."""

from __future__ import annotations

from collections import Counter

from chaos_project import ChaosProject, NewChaosProject, broken, fault
from crash_project import keys, wait_for

from pytest_hillclimb.chaos.fault import Fault

PLANNED = [("a", 0), ("b", 0), ("c", 0)]

EVAL = """
def pytest_hillclimb_load_cases(config):
    return [{"id": name} for name in "abc"]


def pytest_collection_finish():
    if "RACE" in os.environ:
        (HOME / f"{os.getpid()}.awake").touch()
        wait_until(lambda: len(list(HOME.glob("*.awake"))) == 2)
        show(f"pid {os.getpid()} met the other")


def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    if "RACE" in os.environ:
        wait_until((HOME / "go-on").exists)
    return answer(case)
"""


def race(project: ChaosProject, given: Fault, *off: str) -> dict[str, bool]:
    """Record one case, then resume twice; the winner does not end before the other has met it."""
    options = project.plugins(*off)
    project.run("--hillclimb-case=a")
    sessions = [project.start(*options, RACE="1") for _ in range(2)]
    wait_for(lambda: not all(each.running for each in sessions) or len({call.pid for call in project.calls()}) == 3)
    (project.root / "go-on").touch()
    ends = {each.pid: each.end() for each in sessions}
    for line in project.evidence:
        given.fire(line)
    statuses = sorted(done.status for done in ends.values())
    winners = [pid for pid, done in ends.items() if done.status == 0]
    refused = [done for done in ends.values() if done.status == 4]
    return {
        "one wakes": statuses == [0, 4],
        "the other is told by whom it is refused": len(refused) == 1 and f"(pid {winners[0]} on " in refused[0].text,
        "each call is paid once": set(Counter(call.key for call in project.calls()).values()) == {1},
        "all that was asked for is there once": keys(project.rows()) == PLANNED,
        "nothing failed": project.errors() == [],
    }


def test_wake_race(new_project: NewChaosProject) -> None:
    given = fault("chaos-wake-race")
    assert broken(given, race(new_project(EVAL), given)) == set()
    assert len(given.evidence) == 2


def test_wake_race_that_both_win(new_project: NewChaosProject) -> None:
    given = fault("chaos-wake-race")
    assert broken(given, race(new_project(EVAL), given, "guards_off/no_lock")) == {
        "one wakes",
        "the other is told by whom it is refused",
        "each call is paid once",
        "all that was asked for is there once",
    }
