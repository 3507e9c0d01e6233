"""What is checked before anything is spent: what was selected, by whatever means, and is to be run; a plan tells of it.

A token costs one US dollar.
"""

from __future__ import annotations

import pytest
from eval_project import Project, refused
from matrix_project import Matrix, candidate, case, counts

CEILING = "--hillclimb-max-cost"


@pytest.fixture(autouse=True)
def _no_ceiling_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HILLCLIMB_MAX_COST_USD", raising=False)


def mixed(project: Project) -> Matrix:
    """Return a matrix of luna, who has a price and a budget, and of another one, who has neither."""
    matrix = Matrix(project)
    unpriced = {"id": "other", "model": "unpriced", "qualification": {"required_env": ["OTHER_KEY"]}}
    matrix.candidates(candidate("luna", max_cost_usd=2), second=[unpriced])
    return matrix


NODE_IDS = [f"evals/catalog.json::{name}::luna/rep0" for name in "ab"]
DESELECTED = [f"--deselect=evals/catalog.json::{name}::other/rep0" for name in "ab"]


@pytest.mark.parametrize("chosen", [["-k", "luna"], NODE_IDS, DESELECTED], ids=["keyword", "node ids", "deselected"])
def test_only_what_was_selected_needs_a_price(
    project: Project, monkeypatch: pytest.MonkeyPatch, chosen: list[str]
) -> None:
    monkeypatch.setenv("OTHER_KEY", "k")
    matrix = mixed(project)
    assert matrix.run(f"{CEILING}=4", *chosen).ret == 0
    assert sorted(matrix.calls()) == ["a luna/rep0", "b luna/rep0"]
    assert "other (unpriced) has no price" in refused(matrix.run(f"{CEILING}=4", "-k", "other"))
    assert len(matrix.calls()) == 2


def test_who_is_skipped_needs_no_price(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTHER_KEY", raising=False)
    result = mixed(project).run(f"{CEILING}=4")
    assert (result.ret, counts(result)) == (0, {"passed": 2, "skipped": 2})
    assert "--hillclimb-require-qualified" in refused(
        mixed(project).run(f"{CEILING}=4", "--hillclimb-require-qualified")
    )


def test_a_refused_run_leaves_nothing_but_its_approval(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "k")
    matrix = mixed(project)
    refused(matrix.run(f"{CEILING}=4"))
    assert [path.name for path in (project.path / ".claude/hillclimb/flow").iterdir()] == ["_state.json"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([f"{CEILING}=4"], "--hillclimb-max-cost: the usage of other (unpriced) has no price"),
        ([f"{CEILING}=1", "-k", "luna"], "--hillclimb-max-cost: 1 USD is below the 2 USD that one execution may cost"),
        ([f"{CEILING}=4", "-k", "luna", "-n4"], "4 USD (1 for each of 4 workers) is below the 2 USD"),
        ([f"{CEILING}=4", "-k", "luna"], None),
        ([f"{CEILING}=4", "-k", "luna", "-n2"], None),
    ],
)
def test_a_plan_says_that_its_run_would_be_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, arguments: list[str], why: str | None
) -> None:
    monkeypatch.setenv("OTHER_KEY", "k")
    matrix = mixed(project)
    result = matrix.run("--hillclimb-plan", *arguments)
    assert result.ret == 0
    printed = [line for line in result.outlines if line.startswith("hillclimb: ")]
    if why is None:
        assert "would be refused" not in result.stdout.str()
    else:
        assert printed[-1].startswith("hillclimb: note: this run would be refused: ")
        assert why in printed[-1]
    assert matrix.calls() == []


def test_who_can_never_be_measured_is_told_at_the_start(project: Project) -> None:
    matrix = Matrix(project, case("a"))
    matrix.candidates(candidate("luna", max_cost_usd=9), second=[candidate("kimi", max_cost_usd=2)])
    result = matrix.run(f"{CEILING}=8")
    told = "never measured, as one execution may cost more than the ceiling of 8 USD: luna (luna-1) may cost 9 USD"
    assert f"hillclimb: note: {told}" in result.outlines
    assert counts(result) == {"passed": 1, "skipped": 1}
    assert "never measured" not in matrix.run(f"{CEILING}=9", "--hillclimb-fresh").stdout.str()
