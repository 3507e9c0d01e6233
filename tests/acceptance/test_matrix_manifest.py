"""A candidate manifest that cannot be used is refused in one line before anything runs; one that can is pinned."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from eval_project import Project, refused
from matrix_project import Matrix, candidate, case, nodes

from pytest_hillclimb.model.ids import path_safe

KEY = "sk-ant-" + "api03-0123456789abcdef"  # in two parts, so that no scanner takes this file for a leak


def good() -> dict[str, Any]:
    return {"slots": [{"id": "s1", "candidates": [candidate("luna")]}, {"id": "s2", "candidates": [candidate("kimi")]}]}


def luna(**more: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        manifest["slots"][0]["candidates"][0].update(more)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.clear(), ["slots is missing"]),
        (lambda m: m.update(slots=[]), ["slots"]),
        (lambda m: m["slots"][1].update(candidates=[]), ["slot 's2'", "candidates"]),
        (luna(id="kimi"), ["slot 's2'", "candidate 'kimi'", "id", "twice"]),
        (luna(id="LUNA", slot_id="s9"), ["slot 's1'", "candidate 'LUNA'", "slot_id"]),
        (luna(id="x" * 41), ["slot 's1'", "id must be", "40"]),
        (luna(id="../x"), ["slot 's1'", "id must be"]),
        (luna(model=" "), ["slot 's1'", "candidate 'luna'", "model"]),
        (luna(modle="m"), ["candidate 'luna'", "modle", "did you mean 'model'?"]),
        (luna(budget={"max_cost_usd": -1}), ["candidate 'luna'", "budget.max_cost_usd", "-1"]),
        (luna(budget={"max_attempts": 0}), ["candidate 'luna'", "budget.max_attempts", "from 1"]),
        (luna(budget={"max_latency_ms": True}), ["candidate 'luna'", "budget.max_latency_ms", "true"]),
        (luna(qualification={"required_env": "A B"}), ["candidate 'luna'", "required_env"]),
        (luna(settings={"auth": KEY}), ["slot 's1'", "candidate 'luna'", "settings.auth", "credential"]),
        (lambda m: m.update(schedule={"cycle": 0}), ["schedule.cycle"]),
    ],
)
def test_a_flaw_is_refused_with_file_slot_candidate_and_field(
    project: Project, change: Callable[[dict[str, Any]], None], words: list[str]
) -> None:
    matrix, manifest = Matrix(project), good()
    change(manifest)
    matrix.write(manifest)
    before = project.files()
    told = refused(matrix.run())
    assert told.startswith("candidates.json")
    for word in words:
        assert word in told
    assert KEY not in told
    assert project.files() == before, "nothing is approved, and nothing is written"
    assert matrix.calls() == []


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("c.yaml", "slots:\n  - id: [", ["c.yaml", "line"]),
        ("c.json", '{"slots": ', ["c.json", "line"]),
        ("c.yaml", "slots: &a [*a]", ["c.yaml"]),
        ("c.toml", "slots = []", [".yaml, .yml, .json"]),
        ("missing.yaml", None, ["missing.yaml", "is no file"]),
    ],
)
def test_a_file_that_is_no_manifest_is_refused(project: Project, name: str, text: str | None, words: list[str]) -> None:
    Matrix(project)
    if text is not None:
        project.write(name, text)
    told = refused(project.approved(f"--hillclimb-candidates={name}"))
    for word in words:
        assert word in told


def test_yaml_says_in_which_line(project: Project) -> None:
    Matrix(project)
    project.write("c.yaml", "slots:\n  - id: s1\n    candidates:\n      - {id: luna, model: luna-1, tear: x}\n")
    assert "c.yaml, line 4: slot 's1', candidate 'luna'" in refused(project.approved("--hillclimb-candidates=c.yaml"))


@pytest.mark.parametrize("by_ini", [False, True])
def test_a_model_beside_a_manifest_is_refused(project: Project, by_ini: bool) -> None:
    matrix = Matrix(project)
    if by_ini:
        project.ini(hillclimb_enabled="true", hillclimb_model="m-1")
    told = refused(matrix.run(*([] if by_ini else ["--hillclimb-model=m-1"])))
    assert "--hillclimb-model" in told
    assert "--hillclimb-candidates" in told


def test_the_ini_names_the_manifest_from_its_own_place(project: Project) -> None:
    matrix = Matrix(project)
    project.ini(hillclimb_enabled="true", hillclimb_candidates="candidates.json")
    assert project.approved().ret == 0
    assert len(matrix.rows()) == 6
    moved = project.command("-q", "--collect-only", cwd=project.path / "evals")
    assert moved.returncode == 0, moved.stdout + moved.stderr
    assert moved.stdout.count("::luna/rep0") == 2


def test_the_command_line_names_it_from_where_one_is(project: Project) -> None:
    matrix = Matrix(project)
    (project.path / "candidates.json").rename(project.path / "evals/mine.json")
    assert project.approved("--hillclimb-candidates=evals/mine.json", "--hillclimb-limit=1").ret == 0
    assert list(matrix.rows()) == ["a.luna_rep0"]


def test_a_changed_manifest_must_be_approved_again(project: Project) -> None:
    matrix = Matrix(project)
    assert matrix.run("--collect-only").ret == 0
    matrix.candidates(candidate("luna", max_attempts=2))
    told = refused(project.run("--hillclimb-candidates=candidates.json"))
    assert "the harness has changed" in told
    assert "candidates.json" in told
    assert matrix.calls() == []
    assert matrix.run("-q").ret == 0


def test_pairs_that_would_share_a_row_are_refused(project: Project) -> None:
    matrix = Matrix(project, case("a"), case("a.x"))
    matrix.candidates(candidate("x.y"), candidate("y"))
    told = refused(matrix.run())
    for word in ("case 'a'", "candidate 'x.y'", "case 'a.x'", "candidate 'y'", "'a.x.y'"):
        assert word in told


def test_no_selection_weakens_the_checks_of_the_whole_set(project: Project) -> None:
    matrix = Matrix(project, case("a"), case("a.x"), case("c"))
    matrix.candidates(candidate("x.y"), candidate("y"), second=[candidate("kimi")])
    assert "would share the id" in refused(matrix.run("--hillclimb-case=c", "--hillclimb-candidate=kimi", "-k", "c"))


def test_a_candidate_that_was_measured_keeps_its_model(project: Project) -> None:
    matrix = Matrix(project)
    assert matrix.run("--hillclimb-candidate=luna").ret == 0
    matrix.candidates({"id": "luna", "model": "luna-2"})
    told = refused(matrix.run())
    for word in ("the candidate luna", "luna-1", "luna-2", "another variant"):
        assert word in told
    assert len(matrix.calls()) == 2
    assert matrix.run("--hillclimb-variant=v1", "-q", "--hillclimb-candidate=kimi").ret == 0


def test_a_candidate_without_rows_may_have_another_model(project: Project) -> None:
    matrix = Matrix(project)
    assert matrix.run("--hillclimb-candidate=luna").ret == 0
    matrix.candidates(candidate("luna"), second=[{"id": "kimi", "model": "glm-1"}])
    assert matrix.run().ret == 0
    assert matrix.rows()["a.kimi_rep0"]["model"] == "glm-1"
    run = json.loads((project.flow / "baseline/run.json").read_text())
    assert run["candidates"] == {"luna": "luna-1", "kimi": "glm-1", "glm": "glm-1"}


def test_cases_of_a_hook_meet_candidates_too(project: Project) -> None:
    matrix = Matrix(project)
    (project.path / "evals/catalog.json").unlink()
    conftest = project.path / "evals/conftest.py"
    more = (
        "\n\ndef pytest_hillclimb_load_cases(config):\n    return [{'id': 'x y'}, {'id': 'z', 'expected': object()}]\n"
    )
    conftest.write_text(conftest.read_text() + more)
    result = matrix.run("-q")
    assert result.ret == 0
    safe = path_safe("x y")
    assert set(matrix.rows()) == {f"{c}.{who}_rep0" for c in (safe, "z") for who in ("luna", "kimi", "glm")}
    assert matrix.rows()[f"{safe}.glm_rep0"]["meta"]["original_id"] == "x y"
    again = project.run("--hillclimb-candidates=candidates.json", f"evals/conftest.py::{safe}::kimi/rep0", "-v")
    assert again.ret == 0
    assert "1 recorded" in again.stdout.str()


@pytest.mark.parametrize(
    ("ids", "notes"),
    [
        (["a.luna", "a.kimi", "b.glm"], []),
        (["a", "b"], ["split ids that name cases: 2 "]),
        (["a.luna", "a.nobody"], ["split id 'a.nobody' matches no loaded case"]),
    ],
)
def test_splits_name_rows_or_cases(project: Project, ids: list[str], notes: list[str]) -> None:
    matrix = Matrix(project)
    project.write(".claude/hillclimb/flow/_state.json", json.dumps({"train_ids": ids[:1], "val_ids": ids[1:]}))
    result = matrix.run("--hillclimb-plan", "--hillclimb-candidate=luna")
    assert result.ret == 0
    assert nodes(result) == ["a::luna/rep0", "b::luna/rep0"]
    told = [line for line in result.outlines if "note: " in line]
    assert [note in line for note, line in zip(notes, told, strict=True)] == [True] * len(notes)


def test_a_split_id_that_no_row_can_have_is_refused_whatever_is_selected(project: Project) -> None:
    matrix = Matrix(project)
    project.write(".claude/hillclimb/flow/_state.json", json.dumps({"test_ids": ["a/luna"]}))
    assert "test_ids holds 'a/luna'" in refused(matrix.run("--hillclimb-case=b"))


def test_a_manifest_elsewhere_does_not_hide_the_ini_file(project: Project) -> None:
    matrix = Matrix(project)
    outside = project.path.parent / "elsewhere.json"
    (project.path / "candidates.json").rename(outside)
    told = refused(project.approved("--hillclimb-candidates", str(outside)))
    assert told.startswith(f"write --hillclimb-candidates={outside} in one word")
    assert project.approved(f"--hillclimb-candidates={outside}", "--hillclimb-limit=1").ret == 0
    assert list(matrix.rows()) == ["a.luna_rep0"]


@pytest.mark.parametrize("spec", ["popen//chdir=elsewhere", "ssh=nowhere"])
def test_a_manifest_is_no_path_of_tests_for_workers_elsewhere(project: Project, spec: str) -> None:
    matrix = Matrix(project)
    told = refused(project.approved("-d", f"--tx={spec}", "--hillclimb-candidates", "candidates.json"))
    assert told.startswith("write --hillclimb-candidates=candidates.json in one word")
    assert matrix.calls() == []
