"""What a run will cover is printed before it spends anything, and can be narrowed, planned, or repeated aside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from eval_project import Project, refused


@pytest.fixture
def ready(project: Project) -> Project:
    project.cases(
        {"id": "final response", "tags": ["end"]},
        {"id": "opening-hours", "tags": ["facts"]},
        {"id": "off", "grade": False, "tags": ["facts"]},
        {"id": "last"},
    )
    project.approved("--collect-only")
    return project


def scope(result: pytest.RunResult) -> str:
    [line] = [line for line in result.outlines if re.search(r"hillclimb: .* executions?", line)]
    return str(line)


def test_the_scope_is_printed_before_the_first_call(ready: Project) -> None:
    conftest = ready.path / "evals/conftest.py"
    conftest.write_text(conftest.read_text().replace("    say(case)\n", "    print('CALLED', case.id)\n"))
    ready.approved("--collect-only")
    result = ready.run("-s", "--hillclimb-variant=v2", "--hillclimb-model=m-1", "--hillclimb-reps=2")
    lines = result.outlines
    called = next(i for i, line in enumerate(lines) if "CALLED" in line)
    before = "\n".join(lines[:called])
    assert "4 cases x 2 reps = 8 executions" in before
    assert "8 to run" in before
    assert "0 recorded" in before
    assert "m-1" in before
    assert "v2" in before


def test_the_scope_counts_what_is_recorded(ready: Project) -> None:
    ready.run("-k", "facts")
    line = scope(ready.run("-k", "not last", "--hillclimb-reps=2"))
    assert "4 cases x 2 reps = 8 executions" in line
    assert "6 selected" in line
    assert "2 recorded" in line
    assert "4 to run" in line


def test_a_plan_runs_nothing_and_exits_with_0(ready: Project) -> None:
    ready.run("-k", "facts")
    before, spent = ready.files(), ready.spent()
    result = ready.run("--hillclimb-plan", "--hillclimb-reps=2")
    assert result.ret == 0
    assert "8 executions" in scope(result)
    assert "2 recorded" in scope(result)
    nodes = [line.split() for line in result.outlines if "evals/catalog.json::" in line]
    assert len(nodes) == 8
    assert sum("recorded" in node for node in nodes) == 2
    assert ready.spent() == spent
    assert ready.files() == before
    assert result.parseoutcomes().get("passed", 0) == 0


@pytest.mark.parametrize("more", [["-q"], ["-x"], ["-k", "off"], ["--hillclimb-case", "off"], ["--hillclimb-fresh"]])
def test_a_plan_with_other_options(ready: Project, more: list[str]) -> None:
    before = ready.files()
    result = ready.run("--hillclimb-plan", *more)
    assert result.ret == 0
    assert "evals/catalog.json::off::rep0" in result.stdout.str()
    assert not ready.spent()
    assert ready.files() == before
    assert not list((ready.path / "temporary").iterdir())


def test_a_plan_before_anything_was_recorded_makes_no_directory(ready: Project) -> None:
    ready.run("--hillclimb-plan", "--hillclimb-variant=v7")
    assert not (ready.flow / "v7").exists()


def test_a_plan_leaves_ordinary_tests_alone(ready: Project) -> None:
    ready.write("evals/test_x.py", "def test_x():\n    open('ran', 'w')\n")
    assert ready.run("--hillclimb-plan").ret == 0
    assert not (ready.path / "ran").exists()


# --- fresh ------------------------------------------------------------------------------------------------------------


def fresh_directory(project: Project, result: pytest.RunResult) -> Path:
    temporary = project.path / "temporary"
    [made] = [path for path in temporary.iterdir() if path.is_dir()]
    assert str(made) in result.stdout.str()
    return made


def test_fresh_runs_again_and_writes_only_to_a_temporary_directory(ready: Project) -> None:
    ready.run()
    before = ready.files()
    result = ready.run("--hillclimb-fresh")
    assert result.ret == 1
    assert len(ready.spent()) == 8
    assert "4 to run" in scope(result)
    assert ready.files() == before
    made = fresh_directory(ready, result)
    [results] = made.rglob("results.jsonl")
    assert len(results.read_text().splitlines()) == 4
    assert len(list(made.rglob("traces/*.json"))) == 4
    names = {path.name for path in made.rglob("*")}
    assert "_state.json" not in names
    # The trace that a failure names is the one of this session.
    [trace] = [line.split()[-1] for line in result.outlines if re.match(r" *trace +\S", line)]
    assert (ready.path / trace).resolve().is_relative_to(made.resolve())


def test_fresh_before_anything_was_recorded_leaves_no_variant(ready: Project) -> None:
    ready.run("--hillclimb-fresh", "--hillclimb-variant=v3")
    assert [path.name for path in ready.flow.iterdir()] == ["_state.json"]


def test_fresh_reads_the_references_of_the_baseline(ready: Project) -> None:
    conftest = ready.path / "evals/conftest.py"
    conftest.write_text(conftest.read_text() + "\n\ndef pytest_hillclimb_perf(case, run):\n    return {}\n")
    text = conftest.read_text().replace(
        '    spend("grade", case, ctx)\n', '    spend(f"ref={ref!r}".replace(" ", "_"), case, ctx)\n'
    )
    conftest.write_text(text)
    ready.approved()
    ready.run("--hillclimb-fresh", "--hillclimb-variant=v1", "-k", "last")
    assert "ref='said_last' last rep0 v1" in (ready.path / "spend.log").read_text()


@pytest.mark.parametrize("args", [["--no-summary"], ["-q"], ["-qq"], ["--no-header"], ["-x"]])
def test_the_temporary_directory_is_printed_however_quiet(ready: Project, args: list[str]) -> None:
    fresh_directory(ready, ready.run("--hillclimb-fresh", *args))


# --- cases and limits -------------------------------------------------------------------------------------------------


def safe_id(project: Project) -> str:
    result = project.run("--collect-only", "-q")
    [found] = re.findall(r"::(final_response-[0-9a-f]{8})::", result.stdout.str())
    return str(found)


def test_cases_as_written_or_path_safe_and_repeated(ready: Project) -> None:
    ready.run("--hillclimb-case", "final response").assert_outcomes(passed=1, deselected=3)
    ready.run("--hillclimb-case", safe_id(ready), "--hillclimb-fresh").assert_outcomes(passed=1, deselected=3)
    ready.run("--hillclimb-case=last", "--hillclimb-case=final response", "--hillclimb-case=last", "--hillclimb-reps=2")
    assert len(ready.spent()) == 2 + 3  # the first row is there already
    assert len(ready.rows()) == 4


def test_an_unknown_case_says_what_there_is(ready: Project) -> None:
    for args in (["--hillclimb-case", "openinghours"], ["--hillclimb-case", "last", "--hillclimb-case", "Last"]):
        told = refused(ready.run(*args))
        assert args[-1] in told
        assert "opening-hours" in told
        assert "final response" in told
    assert not ready.spent()


def test_an_unknown_case_among_many_lists_some(project: Project) -> None:
    project.cases(*({"id": f"case-{i:03}"} for i in range(300)))
    told = refused(project.approved("--hillclimb-case", "nothing"))
    assert "case-000" in told
    assert "more" in told
    assert len(told) < 600


def test_limit_counts_executions_in_the_order_of_the_plan(ready: Project) -> None:
    result = ready.run("--hillclimb-limit=3", "--hillclimb-reps=2")
    assert result.parseoutcomes() == {"passed": 3, "deselected": 5}
    assert [(name[:5], rep) for name, rep in ready.slots()] == [("final", 0), ("final", 1), ("openi", 0)]
    assert ready.run("--hillclimb-limit=100").parseoutcomes() == {"passed": 3, "failed": 1}


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (["-k", "facts", "--hillclimb-limit=1"], ["opening-hours rep0"]),
        (["--hillclimb-case=off", "--hillclimb-case=last", "--hillclimb-limit=1"], ["off rep0"]),
        (["evals/catalog.json::last", "--hillclimb-reps=3", "--hillclimb-limit=2"], ["last rep0", "last rep1"]),
        (["evals/catalog.json::last", "evals/catalog.json::off", "--hillclimb-limit=1"], ["off rep0"]),
        (["-k", "facts", "--hillclimb-case=off"], ["off rep0"]),
        (
            ["-k", "facts and not off", "--hillclimb-reps=2", "--hillclimb-limit=3"],
            ["opening-hours rep0", "opening-hours rep1"],
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_limits_compose_with_the_selections_of_pytest(ready: Project, args: list[str], wanted: list[str]) -> None:
    ready.run(*args, "--hillclimb-concurrency=1")
    assert ready.spent() == wanted


def test_a_selection_that_leaves_nothing_is_5(ready: Project) -> None:
    assert ready.run("-k", "facts", "--hillclimb-case=last").ret == 5
    assert ready.run("evals/catalog.json::off", "--hillclimb-case=last").ret == 5
    assert not ready.spent()


def test_a_node_id_that_does_not_exist_is_pytests_own_error(ready: Project) -> None:
    result = ready.run("evals/catalog.json::nothing")
    assert result.ret == 4
    assert "evals/catalog.json::nothing" in result.stderr.str()
    assert not ready.spent()


def test_another_model_is_refused_before_anything_is_run(ready: Project) -> None:
    ready.run("--hillclimb-model=m-1", "--hillclimb-case=off", "--hillclimb-fail-on=error")
    told = refused(ready.run("--hillclimb-model=m-2"))
    assert "m-1" in told
    assert "m-2" in told
    assert len(ready.spent()) == 1
