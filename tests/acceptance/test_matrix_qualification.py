"""A candidate whose environment is not set is skipped, or refused; its credentials are its own."""

from __future__ import annotations

import pytest
from eval_project import Project, refused
from matrix_project import Matrix, candidate, case, counts, reasons, table

SECRET = "value-of-a-credential"


@pytest.fixture
def matrix(project: Project, monkeypatch: pytest.MonkeyPatch) -> Matrix:
    """Luna needs LUNA_KEY, which is not set; kimi needs KIMI_KEY, which is; glm needs nothing."""
    for name in ("LUNA_KEY", "HILLCLIMB_MAX_COST_USD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KIMI_KEY", SECRET)
    matrix = Matrix(project)
    matrix.candidates(candidate("luna", env="LUNA_KEY"), second=[candidate("kimi", env="KIMI_KEY"), candidate("glm")])
    return matrix


@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_an_unqualified_candidate_is_skipped_with_the_names(
    matrix: Matrix, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("LUNA_KEY", value)
    result = matrix.run("-rs", "--junitxml=junit.xml")
    assert result.ret == 0
    assert counts(result) == {"passed": 4, "skipped": 2}
    assert reasons(result) == ["not qualified: luna needs LUNA_KEY in the environment"] * 2
    assert table(result, "skipped") == "skipped 2"
    assert table(result, "luna") == "luna 0 0 0 2 - -"
    assert set(matrix.rows()) == {f"{c}.{who}_rep0" for c in "ab" for who in ("kimi", "glm")}
    assert matrix.errors() == {}
    kind, properties = matrix.junit()["a luna/rep0"]
    assert (kind, properties["classification"], properties["candidate_id"]) == ("skipped", "skipped", "luna")
    assert SECRET not in result.stdout.str()


def test_several_names_are_all_told(matrix: Matrix) -> None:
    manifest = {"id": "s", "candidates": [candidate("luna")]}
    manifest["candidates"][0]["qualification"] = {"required_env": ["LUNA_KEY", "KIMI_KEY", "OTHER_KEY"]}
    matrix.write({"slots": [manifest]})
    assert reasons(matrix.run("-rs"))[0].endswith("luna needs LUNA_KEY, OTHER_KEY in the environment")


def test_a_run_without_any_qualified_candidate_ends_well(matrix: Matrix) -> None:
    result = matrix.run("--hillclimb-candidate=luna")
    assert (result.ret, counts(result)) == (0, {"skipped": 2, "deselected": 4})
    assert matrix.calls() == []


def test_what_was_recorded_keeps_its_verdict(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUNA_KEY", "k")
    matrix.run("--hillclimb-candidate=luna", "--hillclimb-case=a")
    monkeypatch.delenv("LUNA_KEY")
    result = matrix.run("--hillclimb-candidate=luna")
    assert counts(result) == {"passed": 1, "skipped": 1, "deselected": 4}
    assert "2 selected: 1 recorded, 1 skipped, 0 to run" in result.stdout.str()


def test_the_unqualified_are_never_counted_as_not_tried(matrix: Matrix) -> None:
    matrix.project.cases(case("a", kimi={"grade": False}), case("b"))
    result = matrix.run("-x", "--hillclimb-concurrency=1")
    assert counts(result) == {"skipped": 1, "failed": 1}
    assert table(result, "skipped") == "skipped 2"
    assert table(result, "not") == "not tried 3"


@pytest.mark.parametrize("by_ini", [False, True])
def test_unqualified_candidates_may_be_refused(matrix: Matrix, by_ini: bool) -> None:
    if by_ini:
        matrix.project.ini(hillclimb_enabled="true", hillclimb_require_qualified="true")
    told = refused(matrix.run(*([] if by_ini else ["--hillclimb-require-qualified"])))
    assert "--hillclimb-require-qualified: not qualified: luna needs LUNA_KEY in the environment" in told
    assert matrix.calls() == []


def test_only_what_is_to_be_run_must_be_qualified(matrix: Matrix) -> None:
    chosen = ["--hillclimb-candidate=kimi", "--hillclimb-candidate=glm"]
    assert matrix.run("--hillclimb-require-qualified", *chosen).ret == 0
    assert len(matrix.rows()) == 4
    assert matrix.run("--hillclimb-require-qualified", "--hillclimb-fresh", "-k", "not luna").ret == 0


def test_a_plan_says_that_the_unqualified_would_be_refused(matrix: Matrix) -> None:
    result = matrix.run("--hillclimb-plan", "--hillclimb-require-qualified")
    assert result.ret == 0
    [line] = [line for line in result.outlines if "would be refused" in line]
    assert line.startswith("hillclimb: note: this run would be refused: --hillclimb-require-qualified: not qualified: ")


def test_a_subprocess_sees_only_its_candidates_credentials(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUNA_KEY", "k")
    monkeypatch.setenv("GITHUB_TOKEN", "k")
    monkeypatch.setenv("PLAIN", "k")
    matrix.project.cases(case("a", asks=True))
    assert matrix.run().ret == 0
    names = ("LUNA_KEY", "KIMI_KEY", "GITHUB_TOKEN", "PLAIN", "PATH")
    seen = {
        who: set((matrix.project.path / f"asked-{who}.txt").read_text().split()) & set(names)
        for who in ("luna", "kimi", "glm")
    }
    assert seen == {
        "luna": {"LUNA_KEY", "PLAIN", "PATH"},
        "kimi": {"KIMI_KEY", "PLAIN", "PATH"},
        "glm": {"PLAIN", "PATH"},
    }
