"""Hooks that are missing, misspelt, misdeclared, nested, or come from elsewhere."""

from __future__ import annotations

import re

import pytest
from eval_project import HOOKS, Project, refused

RUN = "def pytest_hillclimb_run_case(case, ctx):\n    return {'output': 'nested ' + case.id}\n"
GRADE = "def pytest_hillclimb_grade_case(case, run, ref, ctx):\n    return {'pass': run.output.startswith('nested')}\n"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("pytest_hillclimb_run_cases", "pytest_hillclimb_run_case"),
        ("pytest_hillclimb_runcase", "pytest_hillclimb_run_case"),
        ("pytest_hillclimb_grade", "pytest_hillclimb_grade_case"),
        ("pytest_hillclimb_load_case", "pytest_hillclimb_load_cases"),
        ("pytest_hillclimb_cases", "pytest_hillclimb_load_cases"),
        ("pytest_hillclimb_performance", "pytest_hillclimb_perf"),
    ],
)
def test_a_misspelt_hook_is_refused_with_the_nearest_name(project: Project, name: str, near: str) -> None:
    project.cases({"id": "a"})
    project.write("evals/conftest.py", f"{HOOKS}\n\ndef {name}(case):\n    pass\n")
    told = refused(project.approved())
    assert f"{name};" in told or f"{name}," in told or f"{name} " in told
    assert re.search(rf"\b{near}\b", told)
    assert "evals/conftest.py" in told
    assert not project.flow.exists()
    assert not project.spent()


def test_a_misspelt_hook_in_a_nested_conftest(project: Project) -> None:
    project.cases({"id": "a"})
    project.write("evals/sub/conftest.py", "def pytest_hillclimb_grade_cases(case):\n    pass\n")
    told = refused(project.approved())
    assert "evals/sub/conftest.py" in told
    assert "pytest_hillclimb_grade_case?" in told


def test_other_names_with_the_prefix_are_no_hooks(project: Project) -> None:
    project.cases({"id": "a"})
    more = "\n\npytest_hillclimb_setting = 3\nimport pytest_hillclimb as pytest_hillclimb_module  # noqa\n"
    project.write("evals/conftest.py", HOOKS + more)
    assert project.approved().ret == 0


@pytest.mark.parametrize("name", ["pytest_hillclimb_run_case", "pytest_hillclimb_grade_case"])
def test_a_missing_hook_is_refused_and_named(project: Project, name: str) -> None:
    project.cases({"id": "a"})
    project.write("evals/conftest.py", HOOKS.replace(f"def {name}(", f"def my_{name.removeprefix('pytest_')}("))
    told = refused(project.approved())
    assert name in told
    assert "evals/conftest.py" in told
    assert not project.flow.exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("pytest_hillclimb_run_case(case, ctx)", "pytest_hillclimb_run_case(case, context)", ["context"]),
        ("pytest_hillclimb_run_case(case, ctx)", "pytest_hillclimb_run_case(case, ctx, model)", ["model"]),
        ("grade_case(case, run, ref, ctx)", "grade_case(case, output, ref, ctx)", ["output"]),
        ("grade_case(case, run, ref, ctx)", "grade_case(case, run, reference, ctx)", ["reference"]),
    ],
)
def test_a_wrong_name_of_an_argument(project: Project, old: str, new: str, words: list[str]) -> None:
    project.cases({"id": "a"})
    project.write("evals/conftest.py", HOOKS.replace(old, new))
    told = refused(project.approved())
    assert [word for word in ["evals/conftest.py", "pytest_hillclimb_", *words] if word not in told] == [], told
    assert not project.flow.exists()


def test_a_wrong_argument_of_the_cases_hook(project: Project) -> None:
    project.write(
        "evals/conftest.py", f"{HOOKS}\n\ndef pytest_hillclimb_load_cases(cfg):\n    return [{{'id': 'a'}}]\n"
    )
    told = refused(project.approved())
    assert "cfg" in told
    assert "evals/conftest.py" in told


def test_a_wrong_name_of_an_argument_in_a_process_of_its_own(project: Project) -> None:
    project.cases({"id": "a"})
    project.write("evals/conftest.py", HOOKS.replace("run_case(case, ctx)", "run_case(case, context)"))
    ran = project.command("--hillclimb-approve-harness")
    assert ran.returncode == 4
    assert "Traceback" not in ran.stderr + ran.stdout
    assert len([line for line in ran.stderr.splitlines() if line]) == 1


def test_hooks_may_leave_out_arguments(project: Project) -> None:
    project.write(
        "evals/conftest.py",
        "def pytest_hillclimb_run_case(case):\n    return {'output': 'x'}\n\n\n"
        "def pytest_hillclimb_grade_case(run):\n    return run.output == 'x'\n\n\n"
        "def pytest_hillclimb_perf(run):\n    return {'cost_usd': 0.25}\n",
    )
    project.cases({"id": "a"})
    assert project.approved().ret == 0
    assert project.rows()[0]["cost_usd"] == 0.25


def test_a_nested_conftest_overrides_the_hooks_for_what_lies_below_it(project: Project) -> None:
    project.cases({"id": "top"})
    project.cases({"id": "low", "grade": False}, file="evals/sub/catalog.json")
    project.write("evals/sub/conftest.py", RUN + "\n\n" + GRADE)
    assert project.approved().ret == 0
    assert project.spent() == ["top rep0"]
    outputs = {path.name: path.read_text() for path in (project.flow / "baseline/ref").iterdir()}
    assert outputs == {"top": "said top", "low": "nested low"}
    grades = {row["prompt_id"]: row["grade"] for row in project.rows()}
    assert grades == {"top": {"score": 1}, "low": {"pass": 1}}


def test_a_nested_conftest_may_override_only_one(project: Project) -> None:
    project.cases({"id": "low"}, file="evals/sub/catalog.json")
    project.write("evals/sub/conftest.py", RUN)
    assert project.approved().ret == 0
    assert project.spent("grade") == ["low rep0"]
    assert not project.spent("run")


def test_hooks_that_lie_only_in_a_nested_conftest(project: Project) -> None:
    project.write("evals/conftest.py", "# pytest_hillclimb_run_case lies with the cases\n")
    project.write("evals/sub/conftest.py", RUN + "\n\n" + GRADE)
    project.cases({"id": "low"}, file="evals/sub/catalog.json")
    assert project.approved().ret == 0


@pytest.mark.parametrize("name", ["pytest_hillclimb_run_case", "pytest_hillclimb_grade_case"])
def test_a_case_that_no_hook_reaches_is_refused_before_any_spend(project: Project, name: str) -> None:
    project.write("evals/conftest.py", HOOKS.replace(f"def {name}(", f"def my_{name.removeprefix('pytest_')}("))
    project.write("evals/sub/conftest.py", RUN + "\n\n" + GRADE)
    project.cases({"id": "low"}, file="evals/sub/catalog.json")
    project.cases({"id": "top"})
    result = project.approved()
    assert not project.spent()
    assert name in refused(result)


def test_cases_of_nested_hooks_have_the_ids_of_their_conftests(project: Project) -> None:
    hook = "def pytest_hillclimb_load_cases(config):\n    return [{'id': '%s'}]\n"
    project.write("evals/conftest.py", HOOKS + "\n\n" + hook % "top")
    project.write("evals/sub/conftest.py", hook % "low")
    project.cases({"id": "listed"}, file="evals/sub/catalog.json")
    result = project.approved("-v")
    result.stdout.fnmatch_lines_random(
        [
            "evals/conftest.py::top::rep0 PASSED*",
            "evals/sub/conftest.py::low::rep0 PASSED*",
            "evals/sub/catalog.json::listed::rep0 PASSED*",
        ]
    )
    project.run("evals/sub/conftest.py::low", "--hillclimb-fresh").assert_outcomes(passed=1)
    project.run("evals/sub", "--hillclimb-fresh").assert_outcomes(passed=2)


def test_the_answer_of_every_perf_hook_counts(project: Project) -> None:
    project.cases({"id": "low"}, file="evals/sub/catalog.json")
    conftest = project.path / "evals/conftest.py"
    conftest.write_text(conftest.read_text() + "\n\ndef pytest_hillclimb_perf(case, run):\n    return {'outer': 1}\n")
    project.write("evals/sub/conftest.py", "def pytest_hillclimb_perf(case, run):\n    return {'inner': 2}\n")
    project.approved()
    [row] = project.rows()
    assert (row["outer"], row["inner"]) == (1, 2)


def test_a_hook_from_outside_of_the_digest_is_noted(project: Project) -> None:
    project.ini(hillclimb_enabled="true", pythonpath=".")
    project.write("shared_grading.py", GRADE)
    project.write(
        "evals/conftest.py", RUN + "\n\nfrom shared_grading import pytest_hillclimb_grade_case  # noqa: E402,F401\n"
    )
    project.cases({"id": "a"})
    result = project.approved()
    assert result.ret == 0
    notes = [line for line in result.outlines if line.startswith("hillclimb: note:")]
    assert [note for note in notes if "shared_grading.py" in note and "harness_paths" in note]
    project.write(".claude/hillclimb/flow/_state.json", '{"harness_paths": ["shared_grading.py"]}')
    assert "shared_grading.py" not in project.approved("--hillclimb-fresh").stdout.str()


def test_a_plugin_may_implement_hooks_and_is_noted(project: Project) -> None:
    project.ini(hillclimb_enabled="true", pythonpath=".")
    project.write("grading_plugin.py", GRADE)
    project.write("evals/conftest.py", RUN)
    project.cases({"id": "a"})
    result = project.approved("-p", "grading_plugin")
    assert result.ret == 0
    assert "grading_plugin.py" in result.stdout.str()


def test_unknown_hooks_in_a_session_without_evals_are_left_to_pytest(project: Project) -> None:
    project.ini()
    project.write("conftest.py", "def pytest_hillclimb_run_cases(case):\n    pass\n")
    project.write("test_x.py", "def test_x():\n    pass\n")
    result = project.run("test_x.py")
    assert result.ret in (0, 1, 3, 4)
    assert "did you mean" not in result.stderr.str()


def test_a_conftest_that_cannot_be_imported_is_pytests_own_error(project: Project) -> None:
    project.cases({"id": "a"})
    project.write("evals/conftest.py", HOOKS + "\n\nraise RuntimeError('half written')\n")
    result = project.approved()
    assert result.ret == 4
    assert "half written" in result.stderr.str()
    assert not project.flow.exists()
