"""Four classes of outcomes, kept apart in rows, on the terminal, in JUnit and in counts; and what is never scored."""

from __future__ import annotations

import pytest
from eval_project import Project, reports
from matrix_project import Matrix, candidate, case, counts, table

CLASSES = ("completed", "candidate_failure", "infrastructure_failure", "skipped")


@pytest.fixture
def matrix(project: Project, monkeypatch: pytest.MonkeyPatch) -> Matrix:
    """Luna fails in every class, kimi never does, and glm is not qualified."""
    monkeypatch.delenv("GLM_KEY", raising=False)
    matrix = Matrix(
        project,
        case("well"),
        case("ungraded", grade={"f1": 0.5}),
        case("missed", luna={"grade": False}),
        case("dear", luna={"cost": 9}),
        case("lost", luna={"infra": "final"}),
        case("broken", luna={"raises": "kaput"}),
        case("other", luna={"served": "kimi-1"}),
        case("skips", luna={"skips": "not today"}),
    )
    second = [candidate("kimi"), candidate("glm", env="GLM_KEY")]
    matrix.candidates(candidate("luna", max_cost_usd=5), second=second)
    return matrix


def test_the_four_classes_are_kept_apart_everywhere(matrix: Matrix) -> None:
    result = matrix.run("--junitxml=junit.xml", "-rs")
    assert result.ret == 1
    assert counts(result) == {"passed": 10, "failed": 2, "errors": 3, "skipped": 9}
    rows, errors = matrix.rows(), matrix.errors()
    luna = {
        name: CLASSES[n]
        for name, n in zip(
            ("well", "ungraded", "missed", "dear", "lost", "broken", "other", "skips"),
            (0, 0, 1, 1, 2, 2, 2, 3),
            strict=True,
        )
    }
    junit = {
        "completed": "passed",
        "candidate_failure": "failure",
        "infrastructure_failure": "error",
        "skipped": "skipped",
    }
    for name, wanted in luna.items():
        kind, properties = matrix.junit()[f"{name} luna/rep0"]
        assert (kind, properties["classification"]) == (junit[wanted], wanted)
        row = rows.get(f"{name}.luna_rep0") or errors.get(f"{name}.luna_rep0")
        assert (row["meta"]["classification"] if row else "skipped") == wanted
        assert (f"{name}.luna_rep0" in errors) == (wanted == "infrastructure_failure")
    assert {properties["classification"] for name, (_, properties) in matrix.junit().items() if "glm" in name} == {
        "skipped"
    }
    assert not any("glm" in name for name in (*rows, *errors))
    assert table(result, "candidate") == "candidate completed failed infra skipped cost USD score f1"
    assert table(result, "luna").startswith("luna 2 2 3 1 ")
    assert table(result, "kimi").startswith("kimi 8 0 0 0 8.0000 ")
    assert table(result, "glm") == "glm 0 0 0 8 - - -"
    assert table(result, "scored") == "scored 12 (8 passed, 2 failed, 2 without a verdict)"
    assert table(result, "errors").startswith("errors 3 ")
    assert table(result, "skipped") == "skipped 9"


def test_a_resume_repeats_verdicts_and_tries_what_was_not_measured_again(matrix: Matrix) -> None:
    matrix.run()
    before = matrix.calls()
    result = matrix.run("--junitxml=junit.xml")
    assert counts(result) == {"passed": 10, "failed": 2, "errors": 3, "skipped": 9}
    again = [call.removesuffix(" luna/rep0") for call in matrix.calls()[len(before) :]]
    assert sorted(again) == ["broken", "lost", "other", "skips"]
    kind, properties = matrix.junit()["dear luna/rep0"]
    assert (kind, properties["classification"], properties["recorded"]) == ("failure", "candidate_failure", "true")
    assert len(matrix.project.errors()) == 6


# --- infrastructure ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("infra", "tries"), [("retryable", 2), ("final", 1)])
def test_infrastructure_that_fails_is_retried_once_if_that_makes_sense(
    project: Project, infra: str, tries: int
) -> None:
    matrix = Matrix(project, case("a", infra=infra, fails_for=3), case("b"))
    matrix.alone()
    result = matrix.run()
    assert counts(result) == {"errors": 1, "passed": 1}
    row = matrix.errors()["a.luna_rep0"]
    attempt = {
        "stage": "app",
        "failure_class": "infrastructure",
        "code": "sandbox_lost",
        "error": "the sandbox is gone",
    }
    assert row["attempts"] == [attempt] * tries
    assert (row["failure_class"], row["code"], row["error"]) == (
        "infrastructure",
        "sandbox_lost",
        "the sandbox is gone",
    )
    assert "grade" not in row
    assert table(result, "cost") == f"cost {3 * tries + 1:.4f} USD app"
    assert table(result, "score") == "score mean 1.000 n=1 pair, 1 row"
    gist = reports(result)["a::luna/rep0"].longrepr.reprcrash.message
    assert gist == "infrastructure: sandbox_lost: the sandbox is gone"


def test_a_retry_that_succeeds_keeps_the_history_and_its_cost(project: Project) -> None:
    matrix = Matrix(project, case("a", infra="retryable", times=1, fails_for=3))
    matrix.alone()
    result = matrix.run()
    assert (result.ret, counts(result)) == (0, {"passed": 1})
    meta = matrix.rows()["a.luna_rep0"]["meta"]
    assert [each["code"] for each in meta["attempts"]] == ["sandbox_lost"]
    assert (meta["retries"], meta["classification"]) == (1, "completed")
    assert meta["retry_usage"] == [{"input_tokens": 3, "output_tokens": 0, "model": "luna-1"}]
    assert table(result, "cost") == "cost 4.0000 USD app"
    assert table(result, "luna") == "luna 1 0 0 0 4.0000 1.000"


def test_one_broken_case_never_ends_a_campaign(project: Project) -> None:
    matrix = Matrix(project, *(case(f"c{i}", luna={"raises": "kaput"}) for i in range(5)), case("z"))
    result = matrix.run("--hillclimb-concurrency=1")
    assert counts(result) == {"errors": 5, "passed": 13}
    assert {row["failure_class"] for row in matrix.errors().values()} == {"error"}
    assert len(matrix.calls()) == 18


def test_without_candidates_infrastructure_keeps_its_code_and_history_too(project: Project) -> None:
    matrix = Matrix(project, case("a", infra="retryable"))
    result = project.approved("--junitxml=junit.xml")
    assert counts(result) == {"errors": 1}
    [row] = project.errors()
    assert (row["code"], len(row["attempts"]), "meta" in row) == ("sandbox_lost", 2, False)
    kind, properties = matrix.junit()["a rep0"]
    assert (kind, properties["classification"]) == ("error", "infrastructure_failure")


# --- skips ------------------------------------------------------------------------------------------------------------


def test_a_skip_after_the_app_was_paid_keeps_its_cost_on_an_errors_row(project: Project) -> None:
    matrix = Matrix(project, case("a", skips_grading=True, cost=3))
    matrix.alone()
    result = matrix.run("-rs")
    assert (result.ret, counts(result)) == (0, {"skipped": 1})
    row = matrix.errors()["a.luna_rep0"]
    assert row["usage"] == {"input_tokens": 3, "output_tokens": 0}
    assert row["meta"]["classification"] == "infrastructure_failure"
    assert table(result, "luna").startswith("luna 0 0 1 0 3.0000")
