"""Interrupted sessions: what reached the controller is on disk, workers stop paying, and a resume completes the run."""

from __future__ import annotations

import signal
from collections.abc import Callable
from time import sleep

import pytest
from worker_project import (
    NewWorkerProject,
    Session,
    WorkerProject,
    assert_orderly,
    case,
    cases,
    ids,
    keys,
    wait_for,
    wait_for_end,
)

# Workers are given two executions each: both are soon busy with their second one.
BUSY = [case("quick-1"), case("ends", seconds=1.8), case("quick-2"), case("hangs", seconds=60)]
MORE = cases(8, seconds=0.05)


def _ctrl_c(session: Session) -> None:
    session.signal_all(signal.SIGINT)


def _cancel(session: Session) -> None:
    session.signal(signal.SIGTERM)


def _start_busy(project: WorkerProject, *options: str) -> Session:
    """Start a session and wait until both workers are busy and what they did before is on disk."""
    project.write_cases(*BUSY, *MORE)
    session = project.start("-n2", *options)
    wait_for(lambda: len(project.calls()) == 4 and len(project.rows()) == 2)
    return session


def _assert_resume_completes(project: WorkerProject, *again: str) -> None:
    """Assert that a resume pays for nothing again but for *again*."""
    project.mend()
    done = project.run("-n2")
    assert done.status == 0, done.text
    project.assert_complete(*ids([*BUSY, *MORE]))
    assert {key[0] for key, count in project.calls_by_key().items() if count > 1} == set(again)
    assert len(project.calls()) == len(BUSY) + len(MORE) + len(again)


@pytest.mark.parametrize("interrupt", [_ctrl_c, _cancel])
def test_interrupt_records_what_ends_in_time(
    new_project: NewWorkerProject, interrupt: Callable[[Session], None]
) -> None:
    project = new_project()
    session = _start_busy(project)
    interrupt(session)
    done = session.end(within=30)
    wait_for_end(project.pids())
    assert done.status == 2, done.text
    assert_orderly(done)
    assert len(project.calls()) == 4, "something was started after the interrupt"
    assert keys(project.rows()) == [("ends", 0), ("quick-1", 0), ("quick-2", 0)]
    assert not project.errors()
    assert "not tried  9" in done.text
    assert "abandoned  1 " in done.text, done.text
    _assert_resume_completes(project, "hangs")


def test_second_interrupt_ends_at_once(new_project: NewWorkerProject) -> None:
    project = new_project()
    session = _start_busy(project)
    _ctrl_c(session)
    sleep(0.5)
    _ctrl_c(session)
    done = session.end(within=30)
    wait_for_end(project.pids())
    assert done.status == 2, done.text
    assert "INTERNALERROR" not in done.text
    assert keys(project.rows()) == [("quick-1", 0), ("quick-2", 0)]
    _assert_resume_completes(project, "ends", "hangs")


def test_workers_end_with_a_killed_controller(new_project: NewWorkerProject) -> None:
    project = new_project()
    session = _start_busy(project)
    session.signal(signal.SIGKILL)
    session.end()
    _assert_resume_completes(project, "ends", "hangs")  # at once: the lock went with its owner
    wait_for_end(project.pids())
    text = session.log.read_text()
    assert "Traceback" not in text
    assert "Warning" not in text, "workers told the terminal of their end"


@pytest.mark.parametrize("option", ["-x", "--maxfail=2"])
def test_first_failure_ends_the_run(new_project: NewWorkerProject, option: str) -> None:
    project = new_project()
    slow = cases(12, seconds=0.5)
    red = [case("fails", "fail"), case("misses", "miss")][: 1 if option == "-x" else 2]
    project.write_cases(*red, *slow)
    done = project.run("-n2", option)
    assert done.status == 2, done.text
    assert_orderly(done)
    calls = project.calls_by_key()
    # pytest-xdist lets a worker go on with one more, as it must tell an item what comes next.
    assert len(calls) <= len(red) + (2 if option == "-x" else 4), "workers went on with what they had queued"
    assert len(project.rows()) + len(project.errors()) == len(calls), "a call is on record nowhere"

    if option != "-x":
        return
    project.mend()
    project.run("-n2")
    assert len(project.rows()) == len(slow) + len(red)
    assert {n for n, count in project.calls_by_key().items() if count > 1} == {("fails", 0)}
