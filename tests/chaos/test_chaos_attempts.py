"""Every attempt fails, or an answer never comes: both end at their bound, with a row that says whose it was."""

from __future__ import annotations

from collections import Counter

import pytest
from chaos_project import ChaosProject, NewChaosProject, broken, end_or_kill, fault, table
from crash_project import keys

from pytest_hillclimb.chaos.fault import Fault

EXHAUSTING = """
def pytest_hillclimb_load_cases(config):
    return [{"id": name} for name in ("first", "down", "last")]


def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    if case.id == "down":
        show(f"attempt {ctx.attempt} failed")
        raise InfrastructureError("sandbox_lost", True, "the sandbox is gone")
    return answer(case)
"""


def exhausted(project: ChaosProject, given: Fault, *off: str) -> dict[str, bool]:
    """Let every attempt of the case in the middle fail in a way that asks for another."""
    done = project.run("--hillclimb-concurrency=1", *project.plugins(*off))
    for line in project.evidence:
        given.fire(line)
    calls = Counter(call.key[0] for call in project.calls())
    rows = [(row["prompt_id"], row["failure_class"], row.get("code")) for row in project.errors()]
    attempts = [attempt["code"] for row in project.errors() for attempt in row["attempts"]]
    return {
        "exactly two attempts": calls["down"] == 2,
        "the failure is recorded with its code": rows == [("down", "infrastructure", "sandbox_lost")],
        "each attempt is kept": attempts == ["sandbox_lost"] * calls["down"],
        "it is not scored": ("down", 0) not in keys(project.rows()),
        "the campaign goes on": keys(project.rows()) == [("first", 0), ("last", 0)],
        "the session says so": done.status == 1 and "errors     1  (infrastructure sandbox_lost 1)" in table(done),
    }


def test_exhaustion(new_project: NewChaosProject) -> None:
    given = fault("chaos-retry-exhaustion")
    assert broken(given, exhausted(new_project(EXHAUSTING), given)) == set()
    assert given.evidence == ("attempt 1 failed", "attempt 2 failed")


@pytest.mark.parametrize(
    ("off", "names"),
    [("always_again", {"exactly two attempts"}), ("stops_at_the_first_error", {"the campaign goes on"})],
)
def test_exhaustion_without_end(new_project: NewChaosProject, off: str, names: set[str]) -> None:
    given = fault("chaos-retry-exhaustion")
    assert broken(given, exhausted(new_project(EXHAUSTING), given, f"guards_off/{off}")) == names


CEILING_S = 0.4
WAITING = """
def pytest_hillclimb_load_cases(config):
    return [{"id": name} for name in ("plain", "async", "grader", "fine")]


async def answer_later(case):
    show(f"{case.id} waits for an answer")
    await asyncio.Event().wait()


def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    if case.id == "async":
        return answer_later(case)
    if case.id == "plain":
        show(f"{case.id} waits for an answer")
        os.read(os.pipe()[0], 1)
    return answer(case)


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    if case.id == "grader":
        show(f"{case.id} waits for an answer")
        threading.Event().wait()
    return True
"""


def unanswered(project: ChaosProject, given: Fault, *off: str, within: float = 20.0) -> dict[str, bool]:
    """Let answers never come: to a plain app, to one on the event loop, and to a grader."""
    options = (f"--hillclimb-timeout={CEILING_S}", *project.plugins(*off))
    session = project.start(*options)
    session.wait_until(lambda: len(project.evidence) == 3)
    done = end_or_kill(session, within)
    for line in project.evidence:
        given.fire(line)
    errors = {row["prompt_id"]: row for row in project.errors()}
    waiting = {"plain": "app", "async": "app", "grader": "judge"}
    return {
        "the session ends": done is not None and done.status == 1,
        "each wait ends as a timeout": {name: row["failure_class"] for name, row in errors.items()}
        == dict.fromkeys(waiting, "timeout"),
        "which names its case": all(
            errors.get(name, {}).get("error", "").startswith(f"{name} rep0: ") for name in waiting
        ),
        "and its stage": all(stage in errors.get(name, {}).get("error", "") for name, stage in waiting.items()),
        "not before the ceiling": all(row["latency_s"] >= CEILING_S for row in errors.values()),
        "none is reported as done": keys(project.rows()) == [("fine", 0)],
        "the session says so": done is not None and "errors     3  (timeout 3)" in table(done),
    }


def test_answers_that_never_come(new_project: NewChaosProject) -> None:
    given = fault("chaos-interaction-timeout")
    assert broken(given, unanswered(new_project(WAITING), given)) == set()


def test_answers_that_never_come_with_nobody_to_watch(new_project: NewChaosProject) -> None:
    given = fault("chaos-interaction-timeout")
    checks = unanswered(new_project(WAITING), given, "guards_off/no_ceiling", within=1.5)
    assert broken(given, checks) == {
        "the session ends",
        "each wait ends as a timeout",
        "which names its case",
        "and its stage",
        "the session says so",
    }
