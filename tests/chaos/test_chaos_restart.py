"""The process of a session is killed: one resumable owner finalises, and nobody writes after it."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest
from chaos_project import ChaosProject, NewChaosProject, broken, fault
from crash_project import keys

from pytest_hillclimb.chaos.fault import Fault

PLANNED = [("a", 0), ("b", 0), ("c", 0)]

EVAL = """
def pytest_hillclimb_load_cases(config):
    return [{"id": name} for name in "abc"]


def stop_at(moment):
    if os.environ.get("STOP_AT") == moment:
        (HOME / "stopped").touch()
        wait_until((HOME / "go-on").exists)


def pytest_runtest_setup(item):
    stop_at("claimed")


def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    if case.id == "b":
        stop_at("executing")
    spend("end", case, ctx)
    return answer(case)


def pytest_runtest_teardown(item, nextitem):
    if nextitem is None:
        stop_at("recorded")
"""

ROWS_BY_THEN = {"claimed": 0, "executing": 2, "recorded": 3}


def restart(project: ChaosProject, given: Fault, *off: str) -> dict[str, bool]:
    """Stop a session, let another resume while it is only asleep, kill it, resume, and check what came of it all."""
    options = project.plugins(*off)
    owner = project.start(*options, STOP_AT=given.phase)
    owner.wait_until((project.root / "stopped").exists)
    owner.wait_until(lambda: len(project.rows()) == ROWS_BY_THEN[given.phase])
    os.kill(owner.pid, signal.SIGSTOP)
    second = project.run(*options)
    if second.status == 4:
        owner.kill()
        last = project.run(*options)
    else:
        (project.root / "go-on").touch()  # its owner wakes up late, and writes
        os.kill(owner.pid, signal.SIGCONT)
        last = owner.end()
    given.fire(f"pid {owner.pid}")
    rows, calls = keys(project.rows()), Counter(call.key for call in project.calls())
    return {
        "the owner is not written over while it lives": second.status == 4 and f"pid {owner.pid} " in second.text,
        "the resumed session ends well": last.status == 0,
        "no execution is lost": set(rows) == set(PLANNED) and not project.errors(),
        "one final row per execution": len(rows) == len(set(rows)),
        "at most two attempts": max(calls.values()) <= 2,
        "nothing recorded is attempted again": sum(calls.values()) <= len(PLANNED) + (given.phase == "executing"),
    }


@pytest.mark.parametrize("phase", ["claimed", "executing", "recorded"])
def test_restart(new_project: NewChaosProject, phase: str) -> None:
    given = fault("chaos-restart", phase)
    assert broken(given, restart(new_project(EVAL), given)) == set()


def test_without_lock_a_late_owner_writes(new_project: NewChaosProject) -> None:
    given = fault("chaos-restart", "executing")
    assert broken(given, restart(new_project(EVAL), given, "guards_off/no_lock")) == {
        "the owner is not written over while it lives",
        "one final row per execution",
    }


def test_without_resume_what_is_recorded_is_done_again(new_project: NewChaosProject) -> None:
    given = fault("chaos-restart", "recorded")
    assert broken(given, restart(new_project(EVAL), given, "guards_off/no_resume")) == {
        "one final row per execution",
        "nothing recorded is attempted again",
    }
