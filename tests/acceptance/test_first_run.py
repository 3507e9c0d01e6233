"""A newcomer's first commands, as README has them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from eval_project import Project, read_lines

HERE = Path(__file__).resolve().parents[2]
README = HERE / "README.md"
QUICKSTART = HERE / "examples/quickstart"

needs_readme = pytest.mark.skipif(not README.is_file(), reason="README.md is not beside the tests")
needs_quickstart = pytest.mark.skipif(not QUICKSTART.is_dir(), reason="the quickstart is not beside the tests")


def blocks(text: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def readme_project(project: Project) -> Project:
    """Set up what README calls a complete project, copied out of README."""
    shutil.rmtree(project.path / "evals")
    (project.path / "pytest.ini").unlink()
    for block in blocks(README.read_text(encoding="utf-8")):
        if title := re.match(r"# (\S+\.\w+)\n", block):
            project.write(title[1], block)
    assert set(project.files()) == {"pytest.ini", "evals/catalog.yaml", "evals/conftest.py"}
    return project


@needs_readme
def test_the_commands_of_the_readme_work_one_after_the_other(readme_project: Project) -> None:
    project, text = readme_project, README.read_text(encoding="utf-8")
    lines = ["pytest --hillclimb-approve-harness", "pytest --hillclimb-variant v3", "pytest -k final-response"]
    assert "\n".join(lines) in [block.strip() for block in blocks(text)]
    approve, variant, keyword = (project.command(*shlex.split(line)[1:]) for line in lines)

    assert (approve.returncode, approve.stderr) == (0, "")
    assert project.slots() == [("final-response", 0), ("opening-hours", 0)]
    assert (project.flow / "baseline/ref/final-response").read_text() == "You are welcome, I have closed this."
    trace = json.loads((project.flow / "baseline/traces/opening-hours_rep0.json").read_text())
    assert [turn["role"] for turn in trace] == ["user", "assistant"]

    assert (variant.returncode, variant.stderr) == (0, "")
    assert [row["grade"] for row in project.rows("v3")] == [{"pass": 1, "same": 1.0}] * 2
    assert "2 passed" in variant.stdout

    assert (keyword.returncode, keyword.stderr) == (0, "")
    assert "1 passed, 1 deselected" in keyword.stdout
    assert len(project.rows()) == 2


@needs_readme
def test_a_new_eval_is_refused_until_it_is_approved(readme_project: Project) -> None:
    told = readme_project.command()
    assert told.returncode == 4
    assert len(told.stderr.split("\n\n")[0].splitlines()) == 1
    assert "--hillclimb-approve-harness" in told.stderr
    assert "evals/conftest.py" in told.stderr
    assert not readme_project.flow.exists()


@needs_readme
def test_the_readme_lists_the_options_that_pytest_knows(project: Project) -> None:
    known = set(re.findall(r"^ +(--hillclimb[a-z-]*)", project.run("--help").stdout.str(), re.MULTILINE))
    listed = set(re.findall(r"^\| `(--hillclimb[a-z-]*)", README.read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == known


@pytest.fixture
def quickstart(project: Project) -> Project:
    shutil.rmtree(project.path / "evals")
    (project.path / "pytest.ini").unlink()
    ignore = shutil.ignore_patterns(".claude", "__pycache__", ".pytest_cache")
    shutil.copytree(QUICKSTART, project.path / "examples/quickstart", ignore=ignore)
    return project


@needs_quickstart
def test_the_quickstart(quickstart: Project) -> None:
    flow = quickstart.path / "examples/quickstart/.claude/hillclimb/flow"
    first = quickstart.command("examples/quickstart", "--hillclimb-approve-harness")
    assert (first.returncode, first.stderr) == (0, "")
    assert "25 passed, 13 missed" in first.stdout
    rows = read_lines(flow / "baseline/results.jsonl")
    assert len({(row["prompt_id"], row["rep"]) for row in rows}) == len(rows) == 38
    assert len(list((flow / "baseline/traces").iterdir())) == 38
    assert len(list((flow / "baseline/ref").iterdir())) == 19
    assert not read_lines(flow / "baseline/errors.jsonl")

    improved = quickstart.command("examples/quickstart", "--hillclimb-variant", "v1")
    assert (improved.returncode, improved.stderr) == (0, "")
    assert "34 passed, 4 missed" in improved.stdout
    rows = read_lines(flow / "v1/results.jsonl")
    assert len({row["prompt_id"] for row in rows if row["grade"]["win"] == 0}) == 1  # the case that got worse

    before = {path: path.read_bytes() for path in flow.rglob("*") if path.suffix in (".jsonl", ".json")}
    again = quickstart.command("examples/quickstart", "--hillclimb-variant", "v1")
    assert again.returncode == 0
    assert "38 recorded, 0 to run" in again.stdout
    assert "--hillclimb-fresh" in again.stdout
    changed = {p.name for p, data in before.items() if p.read_bytes() != data}
    assert changed <= {"run.json"}

    app = quickstart.path / "examples/quickstart/app/rules"
    shutil.copy(app / "v1.yaml", app / "v2.yaml")
    own = quickstart.command("examples/quickstart", "--hillclimb-variant", "v2")
    assert own.returncode == 0
    assert "34 passed, 4 missed" in own.stdout


@needs_quickstart
def test_the_quickstart_shows_what_was_missed(quickstart: Project) -> None:
    shown = quickstart.command("examples/quickstart", "--hillclimb-approve-harness").stdout
    flow = quickstart.path / "examples/quickstart/.claude/hillclimb/flow"
    missed = [row for row in read_lines(flow / "baseline/results.jsonl") if row["grade"]["pass"] == 0]
    assert len(missed) == 13
    unseen = {row["prompt_id"] for row in missed if row["prompt_id"] not in shown}
    assert not unseen
    assert all(row["explanation"]["pass"][:40] in shown for row in missed)
