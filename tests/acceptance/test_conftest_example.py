"""conftest_example.py, copied as it says: refused clearly while empty, and running once it is filled in."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest
from eval_project import Project, refused

EXAMPLE = Path(__file__).resolve().parents[2] / "conftest_example.py"

pytestmark = pytest.mark.skipif(not EXAMPLE.is_file(), reason="conftest_example.py is not beside the tests")

MY_APP = """
from types import SimpleNamespace


class AppDown(Exception):
    pass


async def ask(prompt, *, model, prompt_file, cwd):
    if "Brazil" in prompt:
        raise AppDown("no connection to the app")
    call = SimpleNamespace(name="atlas", arguments={"country": prompt.split()[-1]}, result="a city")
    text = "It is Paris." if "France" in prompt else "It is Kyoto."
    return SimpleNamespace(
        text=text, thinking="hm", html=f"<p>{text}</p>", tool_calls=[call], model="app-model-1",
        input_tokens=11, output_tokens=7, stop_reason="end_turn",
    )


def judge(prompt, output, expected):
    score = None if "Kyoto" in output else 0.75
    return SimpleNamespace(score=score, text="friendly", model="judge-model-1", input_tokens=5, output_tokens=1)
"""


def filled_in(source: str, *, but: tuple[str, ...] = ()) -> str:
    """Put the example of each docstring in the place of the statement that says it is not filled in."""
    lines = source.splitlines()
    for function in reversed(ast.parse(source).body):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or function.name in but:
            continue
        *_, last = function.body
        text = ast.get_docstring(function) or ""
        if isinstance(last, ast.Raise) and "Example::" in text:
            example = textwrap.dedent(text.split("Example::", 1)[1]).strip("\n")
            lines[last.lineno - 1 : last.end_lineno] = textwrap.indent(example, "    ").splitlines()
    return "\n".join(lines) + "\n"


def without(source: str, name: str) -> str:
    [function] = [node for node in ast.parse(source).body if getattr(node, "name", "") == name]
    lines = source.splitlines()
    del lines[function.lineno - 1 : function.end_lineno]
    return "\n".join(lines) + "\n"


@pytest.fixture
def source() -> str:
    return EXAMPLE.read_text(encoding="utf-8")


def test_an_empty_copy_says_what_to_fill_in(project: Project, source: str) -> None:
    project.write("evals/conftest.py", source)
    told = refused(project.run("evals", "--hillclimb-approve-harness"))
    assert "pytest_hillclimb_load_cases is not filled in" in told
    assert "evals/conftest.py" in told
    assert not project.flow.exists()


def test_a_copy_with_a_catalog_says_that_the_app_is_missing(project: Project, source: str) -> None:
    project.write("evals/conftest.py", without(source, "pytest_hillclimb_load_cases"))
    project.write("evals/catalog.yaml", "- id: a\n- id: b\n")
    result = project.run("evals", "--hillclimb-approve-harness")
    assert result.ret == 1
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines("*pytest_hillclimb_run_case is not filled in: call your app there and return a Run*")
    assert not project.rows()


def test_a_copy_without_a_grader_says_so(project: Project, source: str) -> None:
    project.write("my_app.py", MY_APP)
    project.write("evals/conftest.py", filled_in(source, but=("pytest_hillclimb_grade_case",)))
    project.ini(pythonpath=".")
    result = project.run("evals", "--hillclimb-approve-harness")
    assert result.ret == 1
    result.stdout.fnmatch_lines("*pytest_hillclimb_grade_case is not filled in*")
    assert {row["failure_class"] for row in project.errors()} == {"grader_error"}


def test_a_copy_with_its_own_examples_runs(project: Project, source: str) -> None:
    text = filled_in(source)
    assert not re.search(r"^    raise NotImplementedError", text, re.MULTILINE)
    text = text.replace(
        'Case(id="capital-jp"',
        'Case(id="capital-br", prompt="What is the capital of Brazil"),\n        Case(id="capital-jp"',
    )
    project.write("evals/conftest.py", text)
    project.write("my_app.py", MY_APP)
    project.ini(pythonpath=".")
    result = project.run("evals", "--hillclimb-approve-harness", "-v")
    assert result.ret == 1
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["evals/conftest.py::capital-fr::rep0 PASSED*", "*::capital-jp::rep0 ERROR*"])
    [row] = project.rows()
    assert row["grade"] == {"pass": 1, "tone": 0.75, "same_as_baseline": 0.5}
    assert row["judge_usage"] == {"input_tokens": 5, "output_tokens": 1}
    assert row["usage"] == {"input_tokens": 11, "output_tokens": 7}
    assert row["tags"] == ["geography"]
    assert (project.flow / "baseline/out/capital-fr_rep0/answer.html").read_text() == "<p>It is Paris.</p>"
    errors = {row["prompt_id"]: row for row in project.errors()}
    assert errors["capital-br"]["failure_class"] == "infrastructure"
    assert errors["capital-br"]["code"] == "app_down"
    assert errors["capital-jp"]["failure_class"] == "judge_error"
    assert errors["capital-jp"]["judge_usage"] == {"input_tokens": 5, "output_tokens": 1}
    assert errors["capital-jp"]["usage"] == {"input_tokens": 11, "output_tokens": 7}

    later = project.run("evals", "--hillclimb-variant", "v1")
    assert later.ret == 1
    assert [row["grade"]["same_as_baseline"] for row in project.rows("v1")] == [1.0]
