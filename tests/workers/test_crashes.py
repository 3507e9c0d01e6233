"""A worker that dies costs the one execution that it was carrying out, and a resume runs that again."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from worker_project import NewWorkerProject, assert_orderly, case, cases, ids, keys, summary

DEATHS = ["exit", "kill", "segv", "abort"]


def test_each_death_costs_one_execution(new_project: NewWorkerProject) -> None:
    project = new_project()
    well = cases(8, seconds=0.02)
    deadly = [case(f"to-{how}", how) for how in DEATHS]
    project.write_cases(*well[:2], deadly[0], *well[2:5], *deadly[1:3], *well[5:], deadly[3])
    done = project.run("-n2", "--junitxml=junit.xml")
    assert_orderly(done)
    assert done.status == 1
    assert summary(done) == {"passed": 8, "error": 4}
    project.assert_complete(*ids(well))
    errors = {row["prompt_id"]: row for row in project.errors()}
    assert sorted(errors) == sorted(ids(deadly)), done.text
    for name, row in errors.items():
        assert row["failure_class"] == "worker_lost"
        assert "usage" not in row, "what it cost is not known"
        assert f"ERROR evals/catalog.json::{name}::rep0" in done.text
    assert set(project.calls_by_key().values()) == {1}
    assert "errors     4  (worker_lost 4)" in done.text
    _assert_junit_has_errors(project.root / "junit.xml", ids(deadly))

    project.mend()
    again = project.run("-n2")
    assert again.status == 0, again.text
    project.assert_complete(*ids(well), *ids(deadly))
    assert project.calls_by_key() == {(n, 0): 1 for n in ids(well)} | {(n, 0): 2 for n in ids(deadly)}
    assert len(project.errors()) == 4


def _assert_junit_has_errors(file: object, names: list[str]) -> None:
    suite = ET.parse(str(file)).getroot()
    found = [each for each in suite.iter("testcase") if each.find("error") is not None]
    assert len(found) == len(names)
    assert len(list(suite.iter("testcase"))) == 12


def test_no_worker_is_replaced(new_project: NewWorkerProject) -> None:
    project = new_project()
    deadly, well = case("deadly", "exit"), cases(10, seconds=0.05)
    project.write_cases(deadly, *well)
    done = project.run("-n2", "--max-worker-restart=0")
    assert_orderly(done)
    assert done.status == 1
    assert [row["failure_class"] for row in project.errors()] == ["worker_lost"]
    assert "worker restarting disabled" in done.text
    _assert_reconciled(done.text, recorded=len(project.rows()), errors=1, planned=11)

    project.mend()
    assert project.run("-n2", "--max-worker-restart=0").status == 0
    project.assert_complete("deadly", *ids(well))
    assert project.calls_by_key() == {("deadly", 0): 2} | {(name, 0): 1 for name in ids(well)}


@pytest.mark.parametrize("restarts", [0, 1])
def test_all_workers_are_lost(new_project: NewWorkerProject, restarts: int) -> None:
    project = new_project()
    project.write_cases(*cases(8, do="kill", seconds=0.1))
    done = project.run("-n2", f"--max-worker-restart={restarts}")
    assert_orderly(done)
    assert done.status == 1
    lost = project.errors()
    assert keys(lost) == sorted(project.calls_by_key())
    assert {row["failure_class"] for row in lost} == {"worker_lost"}
    _assert_reconciled(done.text, recorded=0, errors=len(lost), planned=8)


def _assert_reconciled(text: str, *, recorded: int, errors: int, planned: int) -> None:
    """Assert that the summary speaks of every execution that was planned."""
    assert f"scored     {recorded}" in text
    assert f"errors     {errors}  (worker_lost {errors})" in text
    untried = planned - recorded - errors
    assert untried == 0 or f"not tried  {untried}" in text, text


def test_workers_that_die_before_they_run_anything(new_project: NewWorkerProject) -> None:
    project = new_project("if HERE != 'one process': os._exit(3)")
    project.write_cases(*cases(4))
    done = project.run("-n2", "--max-worker-restart=2")
    assert_orderly(done)
    assert done.status not in (0, 4), done.text
    assert not project.calls()
    assert not project.rows()


SURROUNDINGS = """
@pytest.fixture(autouse=True)
def surroundings(request):
    name = request.node.nodeid.split("::")[1]
    if name == "before" and not (HOME / "mended").exists():
        die("kill")
    yield
    if name == "after" and not (HOME / "mended").exists():
        time.sleep(0.2)  # the report of the call is on its way
        die("kill")
"""


def test_deaths_around_the_call(new_project: NewWorkerProject) -> None:
    project = new_project(SURROUNDINGS)
    well = cases(4, seconds=0.05)
    project.write_cases(case("before"), case("after"), *well)
    done = project.run("-n2")
    assert_orderly(done)
    assert done.status == 1
    assert [(row["prompt_id"], row["failure_class"]) for row in project.errors()] == [("before", "worker_lost")]
    project.assert_complete("after", *ids(well))
    assert "ERROR evals/catalog.json::before::rep0" in done.text
    assert "ERROR evals/catalog.json::after::rep0" in done.text

    project.mend()
    assert project.run("-n2").status == 0
    project.assert_complete("before", "after", *ids(well))
    assert set(project.calls_by_key().values()) == {1}
