"""The harness gate: what is run, and how it is graded, must be what was approved, before any of it is imported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from eval_project import APPROVE, HOOKS, INI, Project, refused

MARK = "from pathlib import Path\nPath(__file__).with_name('imported').touch()\n"


@pytest.fixture
def gated(project: Project) -> Project:
    project.cases({"id": "a"}, {"id": "b"})
    project.write("conftest.py", MARK)
    project.write("evals/conftest.py", MARK + HOOKS)
    project.write("evals/sub/conftest.py", MARK)
    return project


def imported(project: Project) -> list[Path]:
    return sorted(project.path.rglob("imported"))


def sha(result: pytest.RunResult) -> str:
    [found] = re.findall(r"harness ([0-9a-f]{12})", result.stdout.str())
    return str(found)


def approved_sha(project: Project) -> str:
    return str(json.loads((project.flow / "_state.json").read_text())["harness_sha"])


@pytest.mark.parametrize(
    "args",
    [[], ["evals"], ["evals/catalog.json"], ["evals/catalog.json::a"], ["evals/sub"], ["--hillclimb-plan"], ["-q"]],
    ids=" ".join,
)
def test_a_refused_run_imports_no_conftest(gated: Project, args: list[str]) -> None:
    before = gated.files()
    told = refused(gated.run(*args))
    assert "evals/conftest.py" in told
    assert "evals/catalog.json" in told
    assert "evals/sub/conftest.py" in told
    assert APPROVE in told
    assert not imported(gated)
    assert gated.files() == before


def test_a_refused_run_in_a_process_of_its_own(gated: Project) -> None:
    ran = gated.command()
    assert ran.returncode == 4
    assert ran.stdout == ""
    assert len([line for line in ran.stderr.splitlines() if line]) == 1
    assert not imported(gated)
    assert not (gated.path / ".claude").exists()


def test_five_ways_to_call_pytest_see_one_harness(gated: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    gated.write("uv.lock", "one\n")
    gated.write("evals/requirements-dev.txt", "two\n")
    gated.approved("--collect-only")
    shas = [
        sha(gated.run(*args, "--hillclimb-fresh"))
        for args in ([], ["evals"], ["evals/catalog.json::a"], ["--rootdir=.", "evals"], [f"{gated.path}/evals"])
    ]
    monkeypatch.chdir(gated.path / "evals")
    shas += [sha(gated.run("--hillclimb-fresh")), sha(gated.run("catalog.json::b", "--hillclimb-fresh"))]
    assert set(shas) == {approved_sha(gated)[:12]}


def change_nested_conftest(project: Project) -> None:
    project.write("evals/sub/deeper/conftest.py", "")


def change_catalog(project: Project) -> None:
    project.cases({"id": "a"}, {"id": "b", "prompt": "x"})


def add_catalog(project: Project) -> None:
    project.cases({"id": "c"}, file="evals/sub/catalog.json")


def remove_conftest(project: Project) -> None:
    (project.path / "evals/sub/conftest.py").unlink()


def rename_directory(project: Project) -> None:
    (project.path / "evals/sub").rename(project.path / "evals/bus")


def change_conftest_above(project: Project) -> None:
    project.write("conftest.py", "import os\n")


def change_lockfile(project: Project) -> None:
    project.write("uv.lock", "changed\n")


def add_lockfile_beside(project: Project) -> None:
    project.write("evals/requirements.txt", "x==1\n")


def change_listed_file(project: Project) -> None:
    project.write("app/prompt.md", "Be brief.\n")


def add_below_listed_directory(project: Project) -> None:
    project.write("rubrics/new/deep.txt", "")


def make_the_missing(project: Project) -> None:
    project.write("later.py", "")


@pytest.mark.parametrize(
    "change",
    [
        change_nested_conftest,
        change_catalog,
        add_catalog,
        remove_conftest,
        rename_directory,
        change_conftest_above,
        change_lockfile,
        add_lockfile_beside,
        change_listed_file,
        add_below_listed_directory,
        make_the_missing,
    ],
)
def test_what_changes_the_harness(gated: Project, change: object) -> None:
    gated.write("uv.lock", "one\n")
    gated.write("app/prompt.md", "Be kind.\n")
    gated.write("rubrics/tone.txt", "kind")
    paths = ["app/prompt.md", "rubrics", "later.py"]
    gated.write(".claude/hillclimb/flow/_state.json", json.dumps({"harness_paths": paths}))
    gated.approved("--collect-only")
    old = approved_sha(gated)
    for mark in imported(gated):
        mark.unlink()
    change(gated)  # type: ignore[operator]
    told = refused(gated.run())
    assert "has changed since it was approved" in told
    assert old[:12] in told
    assert not imported(gated)
    assert approved_sha(gated) == old
    assert gated.approved("--collect-only").ret == 0
    assert approved_sha(gated) != old


def test_what_does_not_change_the_harness(gated: Project) -> None:
    gated.write("uv.lock", "one\ntwo\n")
    gated.approved("--collect-only")
    for name in ("conftest.py", "evals/conftest.py", "evals/catalog.json", "uv.lock"):
        path = gated.path / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    gated.write("evals/notes.md", "")
    gated.write("tests/test_x.py", "")
    gated.write("tests/conftest.py", "")
    gated.write("no_eval/catalog.json", "[]")
    gated.write("evals/.hidden/conftest.py", "")
    gated.write("evals/__pycache__/x.pyc", "")
    assert gated.run().ret == 0


def test_the_files_that_a_refusal_names_are_few(project: Project) -> None:
    project.cases({"id": "a"})
    for i in range(30):
        project.write(f"evals/d{i}/conftest.py", "")
    told = refused(project.run())
    assert len(told) < 700
    assert "more" in told


@pytest.mark.parametrize("option", ["--hillclimb-plan", "--collect-only"])
def test_approving_without_running(gated: Project, option: str) -> None:
    result = gated.approved(option)
    assert result.ret == 0
    assert not gated.spent()
    assert [name for name in gated.files() if name.startswith(".claude")] == [".claude/hillclimb/flow/_state.json"]
    assert gated.run().ret == 0


def test_an_approval_changes_one_key_and_keeps_the_rest(gated: Project) -> None:
    state = {"best": "v2", "harness_sha": "old", "note": "caf\u00e9", "n": 1.5}
    gated.write(".claude/hillclimb/flow/_state.json", json.dumps(state))
    gated.approved("--collect-only")
    new = json.loads((gated.flow / "_state.json").read_text())
    assert list(new) == list(state)
    assert {**new, "harness_sha": "old"} == state
    before = (gated.flow / "_state.json").read_bytes()
    gated.approved("--collect-only")
    assert (gated.flow / "_state.json").read_bytes() == before


@pytest.mark.parametrize("where", ["addopts", "environment", "quoted environment", "pyproject"])
def test_a_standing_approval_is_refused(gated: Project, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "environment" in where:
        monkeypatch.setenv("PYTEST_ADDOPTS", f"-q '{APPROVE}'" if "quoted" in where else f"-q {APPROVE}")
    elif where == "pyproject":
        (gated.path / "pytest.ini").unlink()
        keys = f'hillclimb_enabled = true\nhillclimb_paths = ["evals"]\naddopts = ["-q", "{APPROVE}"]\n'
        gated.write("pyproject.toml", f"[tool.pytest.ini_options]\n{keys}")
    else:
        gated.write("pytest.ini", f"{INI}addopts = -q {APPROVE}\n")
    for args in ([], ["--collect-only"], [APPROVE]):
        assert APPROVE in refused(gated.run(*args))
    assert not imported(gated)
    assert not gated.flow.exists()


@pytest.mark.parametrize("option", ["--help", "--version", "--markers"])
def test_asking_pytest_about_itself_is_never_gated(gated: Project, option: str) -> None:
    gated.approved("--collect-only")
    change_catalog(gated)
    assert gated.run(option).ret == 0
    assert gated.run(option, "evals").ret == 0


def test_a_hook_that_is_missing_or_a_bad_id_is_not_approved(gated: Project) -> None:
    gated.cases({"id": "a"}, {"id": "A"})
    assert refused(gated.approved())
    assert refused(gated.approved("--collect-only"))
    assert not gated.flow.exists()
    gated.cases({"id": "a"})
    gated.write("evals/conftest.py", HOOKS.replace("pytest_hillclimb_grade_case", "pytest_hillclimb_grade"))
    assert refused(gated.approved())
    assert not gated.flow.exists()


def test_an_unknown_case_is_not_approved(gated: Project) -> None:
    assert refused(gated.approved("--hillclimb-case", "nothing"))
    assert not gated.flow.exists()


def test_collecting_is_not_gated(gated: Project) -> None:
    result = gated.run("--collect-only")
    assert result.ret == 0
    assert imported(gated)
    assert "not checked" in result.stdout.str()
    assert not (gated.path / ".claude").exists()


def test_the_header_says_what_was_approved(gated: Project) -> None:
    assert re.search(r"harness [0-9a-f]{12} approved now", gated.approved("--hillclimb-plan").stdout.str())
    assert re.search(r"harness [0-9a-f]{12} approved \(4 files\)", gated.run("--hillclimb-plan").stdout.str())


def test_a_project_without_an_ini_file_is_told(gated: Project) -> None:
    (gated.path / "pytest.ini").unlink()
    result = gated.approved("evals")
    assert result.ret == 0
    result.stdout.fnmatch_lines("hillclimb: note: *no ini file*")


def test_the_gate_holds_inside_of_a_worker_of_another_session(gated: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert refused(gated.run())
    assert not gated.spent()
