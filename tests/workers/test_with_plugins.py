"""Evals beside other plugins, in one process and under pytest-xdist: nothing is paid for twice, and nothing is lost."""

from __future__ import annotations

import re

import pytest
from worker_project import NewWorkerProject, assert_orderly, case, cases, ids, keys, side_by_side, summary

WELL = cases(6, seconds=0.02)
MIXED = [*WELL, case("misses", "miss"), case("fails", "fail")]
ALONE_AND_MANY: list[tuple[str, ...]] = [(), ("-n2",)]

GROUPED = """
def pytest_collection_modifyitems(items):
    for number, item in enumerate(items):
        item.add_marker(pytest.mark.xdist_group(f"group-{number % 3}"))
"""


@pytest.mark.parametrize("dist", ["worksteal", "loadscope", "loadfile", "loadgroup"])
def test_ways_to_distribute(new_project: NewWorkerProject, dist: str) -> None:
    project = new_project(GROUPED)
    project.write_cases(case("dies", "kill"), *MIXED, case("dies-last", "exit"))
    done = project.run("-n2", f"--dist={dist}")
    assert_orderly(done)
    assert summary(done) == {"failed": 1, "passed": 6, "error": 3}, done.text
    assert keys(project.errors()) == [("dies", 0), ("dies-last", 0), ("fails", 0)]
    project.assert_complete(*ids(WELL), "misses")
    assert set(project.calls_by_key().values()) == {1}
    noted = "hillclimb: note: --dist loadgroup does not keep groups together on pytest 9.2" in done.text
    assert noted == (dist == "loadgroup")


@pytest.mark.parametrize("options", [("-n2", "--dist=each"), ("--tx=2*popen", "--dist=each")])
def test_each_is_refused(new_project: NewWorkerProject, options: tuple[str, ...]) -> None:
    project = new_project()
    project.write_cases(*MIXED)
    done = project.run(*options)
    done.assert_refused("--dist each", "pay for every execution once per worker")
    assert not project.flow.exists()


def test_randomly(new_project: NewWorkerProject) -> None:
    pytest.importorskip("pytest_randomly")

    def check(options: tuple[str, ...]) -> None:
        project = new_project()
        project.write_cases(*MIXED)
        done = project.run(*options, plugins=["randomly"])
        assert_orderly(done)
        assert "--randomly-seed" in done.text
        assert summary(done) == {"failed": 1, "passed": 6, "error": 1}, done.text
        project.assert_complete(*ids(WELL), "misses")
        assert set(project.calls_by_key().values()) == {1}

    side_by_side(check, ALONE_AND_MANY)


def test_cov(new_project: NewWorkerProject) -> None:
    pytest.importorskip("pytest_cov")

    def check(options: tuple[str, ...]) -> None:
        project = new_project()
        project.write_cases(*MIXED)
        done = project.run(*options, "--cov=evals", plugins=["pytest_cov"])
        assert_orderly(done)
        assert summary(done) == {"failed": 1, "passed": 6, "error": 1}, done.text
        project.assert_complete(*ids(WELL), "misses")
        measured = re.search(r"evals/conftest.py +\d+ +\d+ +(\d+)%", done.text)
        assert measured is not None, done.text
        assert int(measured[1]) > 60, "the calls of trials were not measured"

    side_by_side(check, ALONE_AND_MANY)


@pytest.mark.parametrize("options", [("--timeout-method=thread",), ("-n2", "--timeout-method=signal")])
def test_timeout_does_not_count_waits(new_project: NewWorkerProject, options: tuple[str, ...]) -> None:
    pytest.importorskip("pytest_timeout")
    project = new_project()
    slow = cases(2, seconds=1.2)
    project.write_cases(*slow)
    done = project.run(*options, "--timeout=0.8", plugins=["timeout"])
    assert done.status == 0, done.text
    project.assert_complete(*ids(slow))
    assert len(project.calls()) == 2


SLOW_SET_UP = """
@pytest.fixture(autouse=True)
def slow():
    time.sleep(5)
"""


def test_timeout_bounds_fixtures(new_project: NewWorkerProject) -> None:
    pytest.importorskip("pytest_timeout")

    def check(options: tuple[str, ...]) -> None:
        project = new_project(SLOW_SET_UP)
        project.write_cases(case("one"))
        done = project.run(*options, "--timeout=0.5", "--timeout-method=signal", plugins=["timeout"])
        assert done.status == 1
        assert "Timeout (>0.5s)" in done.text
        assert not project.calls()

    side_by_side(check, ALONE_AND_MANY)


def test_reruns_pay_for_nothing_again(new_project: NewWorkerProject) -> None:
    pytest.importorskip("pytest_rerunfailures")

    def check(options: tuple[str, ...]) -> None:
        project = new_project()
        project.write_cases(*MIXED)
        for session in (1, 2):
            done = project.run(*options, "--reruns=2", plugins=["rerunfailures"])
            assert_orderly(done)
            assert summary(done) == {"failed": 1, "passed": 6, "error": 1, "rerun": 4}, done.text
            project.assert_complete(*ids(WELL), "misses")
            calls = project.calls_by_key()
            assert calls.pop(("fails", 0)) == len(project.errors()) == session
            assert set(calls.values()) == {1}

    side_by_side(check, ALONE_AND_MANY)


MENDING = """
def pytest_handlecrashitem(crashitem):
    (HOME / "mended").touch()
"""


def test_reruns_of_lost_executions_are_recorded(new_project: NewWorkerProject) -> None:
    pytest.importorskip("pytest_rerunfailures")
    project = new_project(MENDING)
    project.write_cases(case("dies", "kill"), *WELL)
    done = project.run("-n2", "--reruns=2", plugins=["rerunfailures"])
    assert_orderly(done)
    assert summary(done) == {"passed": 7, "rerun": 1}, done.text
    assert keys(project.errors()) == [("dies", 0)]
    project.assert_complete("dies", *ids(WELL))
    assert project.calls_by_key().pop(("dies", 0)) == 2


AGAIN = """
import pathlib

def pytest_handlecrashitem(crashitem, report, sched):
    if not (HOME / "again").exists():
        (HOME / "again").touch()
        sched.mark_test_pending(crashitem)

@pytest.fixture(autouse=True)
def dying():
    yield
    time.sleep(0.2)  # the report of the call is on its way
    if not (HOME / "again").exists():
        die("kill")
"""


def test_what_is_recorded_is_not_run_again(new_project: NewWorkerProject) -> None:
    project = new_project(AGAIN)
    project.write_cases(case("one"))
    done = project.run("-n1")
    assert_orderly(done)
    assert summary(done) == {"passed": 1, "error": 1}, done.text
    project.assert_complete("one")
    assert not project.errors()
    assert len(project.calls()) == 1
