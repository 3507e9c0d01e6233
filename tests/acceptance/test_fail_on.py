"""What turns an item red, what it is called, and the exit status that follows."""

from __future__ import annotations

import pytest
from eval_project import Project

FINE = {"id": "fine"}
MISSED = {"id": "off", "grade": False}
BROKEN = {"id": "broken", "raises": "the app fell over"}
UNGRADED = {"id": "shown", "grade": {"length": 12.5}}


def letters(result: pytest.RunResult) -> str:
    return next(line.split()[1] for line in result.outlines if line.startswith("evals/catalog.json "))


@pytest.mark.parametrize(
    ("cases", "fail_on", "shown", "status"),
    [
        ([FINE, UNGRADED], "grade", "..", 0),
        ([FINE, MISSED, UNGRADED], "grade", ".F.", 1),
        ([FINE, MISSED, UNGRADED], "error", ".m.", 0),
        ([BROKEN, FINE], "grade", "E.", 1),
        ([BROKEN, FINE], "error", "E.", 1),
        ([MISSED, BROKEN], "grade", "FE", 1),
        ([MISSED, BROKEN], "error", "mE", 1),
        ([{"id": "out", "skips": "not for us"}, FINE], "grade", "s.", 0),
        ([{"id": "out", "skips": "not for us"}], "error", "s", 0),
    ],
)
def test_letters_and_exit_status(
    project: Project, cases: list[dict[str, object]], fail_on: str, shown: str, status: int
) -> None:
    project.cases(*cases)
    result = project.approved("--hillclimb-fail-on", fail_on)
    assert letters(result) == shown
    assert result.ret == status
    scored = [case["id"] for case in cases if "raises" not in case and "skips" not in case]
    assert [
        row["prompt_id"] for row in sorted(project.rows(), key=lambda row: scored.index(row["prompt_id"]))
    ] == scored
    assert [row["prompt_id"] for row in project.errors()] == [case["id"] for case in cases if "raises" in case]


def test_the_words_of_the_counts(project: Project) -> None:
    project.cases(FINE, MISSED, BROKEN, UNGRADED)
    project.approved("--collect-only")
    result = project.run()
    assert result.parseoutcomes() == {"failed": 1, "passed": 2, "errors": 1}
    result.stdout.fnmatch_lines(
        ["FAILED evals/catalog.json::off::rep0 - *", "ERROR evals/catalog.json::broken::rep0 - *the app fell over*"]
    )
    result = project.run("--hillclimb-fail-on=error", "-v", "--hillclimb-fresh")
    assert result.parseoutcomes() == {"missed": 1, "passed": 2, "errors": 1}
    result.stdout.fnmatch_lines(["*::off::rep0 MISSED*", "*::broken::rep0 ERROR*", "*::shown::rep0 PASSED*"])
    result.stdout.fnmatch_lines("scored * 1 missed, 1 without a verdict*")


@pytest.mark.parametrize(
    ("grade", "letter"),
    [
        (True, "."),
        (False, "F"),
        (0, "."),
        (0.0, "."),
        ({"pass": 1}, "."),
        ({"pass": 0.99}, "F"),
        ({"pass": False, "tone": 1}, "F"),
        ({"score": False}, "."),
        ("raise", "E"),
        (None, "E"),
        ("good", "E"),
        ({}, "E"),
    ],
)
def test_by_what_a_grade_passes(project: Project, grade: object, letter: str) -> None:
    project.cases({"id": "a", "grade": grade})
    result = project.approved()
    assert letters(result) == letter
    if letter == "E":
        assert [row["failure_class"] for row in project.errors()] == ["grader_error"]


def test_passed_wins_over_every_metric(project: Project) -> None:
    conftest = project.path / "evals/conftest.py"
    conftest.write_text(conftest.read_text().replace('get("why"))', 'get("why"), passed=case.expected)'))
    project.cases({"id": "a", "grade": False, "expected": True}, {"id": "b", "grade": {"pass": 1}, "expected": False})
    assert letters(project.approved()) == ".F"


def test_a_recorded_verdict_stays_and_the_rule_of_this_session_colours_it(project: Project) -> None:
    project.cases(FINE, MISSED)
    project.approved("--collect-only")
    assert project.run().ret == 1
    assert project.run().ret == 1
    result = project.run("--hillclimb-fail-on", "error")
    assert result.ret == 0
    assert letters(result) == ".m"
    assert len(project.spent()) == 2


def test_what_could_not_be_measured_is_run_again(project: Project) -> None:
    project.cases({"id": "a", "breaks_until": "mended"}, FINE)
    project.approved("--collect-only")
    assert project.run().ret == 1
    project.write("mended", "")
    result = project.run()
    assert result.ret == 0
    assert letters(result) == ".."
    assert project.spent().count("a rep0") == 2
    assert project.spent().count("fine rep0") == 1
    assert project.slots() == [("a", 0), ("fine", 0)]
    assert len(project.errors()) == 1


def test_exit_status_in_the_ini_file(project: Project) -> None:
    project.ini(hillclimb_enabled="true", hillclimb_fail_on="error")
    project.cases(MISSED)
    assert project.approved().ret == 0
    assert project.run("--hillclimb-fail-on", "grade").ret == 1


def test_pytest_exit_in_a_case_ends_the_session(project: Project) -> None:
    conftest = project.path / "evals/conftest.py"
    conftest.write_text(conftest.read_text().replace("    act(case)\n", "    pytest.exit('enough', returncode=7)\n"))
    project.cases({"id": "a"}, {"id": "b"})
    result = project.approved("--hillclimb-concurrency=1")
    assert result.ret == 7
    assert project.spent() == ["a rep0"]
