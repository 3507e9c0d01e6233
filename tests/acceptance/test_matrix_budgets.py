"""A candidate's budget: time and tries bound the trial, tokens and cost are judged on what was used."""

from __future__ import annotations

from typing import Any

import pytest
from eval_project import Project, reports
from matrix_project import Matrix, case, counts, table


def only_row(matrix: Matrix) -> dict[str, Any]:
    [row] = matrix.rows().values()
    return row


# --- tokens and cost --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "cost", "exceeded"),
    [
        ({"max_cost_usd": 3}, 3, None),
        ({"max_cost_usd": 3}, 4, ["max_cost_usd"]),
        ({"max_total_tokens": 3}, 3, None),
        ({"max_total_tokens": 3}, 4, ["max_total_tokens"]),
        ({"max_total_tokens": 3, "max_cost_usd": 3.5}, 4, ["max_total_tokens", "max_cost_usd"]),
        ({"max_total_tokens": 3, "max_cost_usd": 4}, 4, ["max_total_tokens"]),
        ({"max_cost_usd": 0}, 1, ["max_cost_usd"]),
        ({}, 1000, None),
    ],
)
def test_a_limit_is_exceeded_above_it_and_not_at_it(
    project: Project, budget: dict[str, Any], cost: int, exceeded: list[str] | None
) -> None:
    matrix = Matrix(project, case("a", cost=cost, grade={"pass": 1, "f1": 0.5}))
    matrix.alone(**budget)
    result = matrix.run("--junitxml=junit.xml")
    row = only_row(matrix)
    assert row["grade"] == {"pass": 1, "f1": 0.5}, "the grade is kept as it was given"
    assert row["passed"] is (exceeded is None)
    assert row["meta"].get("budget_exceeded") == exceeded
    assert row["meta"]["classification"] == ("completed" if exceeded is None else "candidate_failure")
    assert counts(result) == {"passed" if exceeded is None else "failed": 1}
    assert result.ret == (0 if exceeded is None else 1)
    assert matrix.errors() == {}
    _, properties = matrix.junit()["a luna/rep0"]
    assert properties.get("budget_exceeded") == (", ".join(exceeded) if exceeded else None)


def test_headline_and_details_name_the_limits(project: Project) -> None:
    matrix = Matrix(project, case("a", cost=4))
    matrix.alone(max_cost_usd=2.5, max_total_tokens=3)
    result = matrix.run("--junitxml=junit.xml")
    gist = "budget exceeded: max_total_tokens 4 of 3, max_cost_usd 4 of 2.5; score 1: against None"
    assert reports(result)["a::luna/rep0"].longrepr.reprcrash.message == gist
    assert gist in (project.path / "junit.xml").read_text()
    lines = [line.strip() for line in result.outlines]
    assert "over budget    | max_total_tokens 4 of 3" in lines
    assert "| max_cost_usd 4 of 2.5" in lines
    assert "grade did not pass" not in result.stdout.str()
    again = matrix.run()
    assert reports(again)["a::luna/rep0"].longrepr.reprcrash.message == f"recorded: {gist}"
    assert matrix.calls() == ["a luna/rep0"]


def test_a_grade_that_did_not_pass_is_told_beside_the_limits(project: Project) -> None:
    matrix = Matrix(project, case("a", cost=4, grade=False), case("b", grade=False))
    matrix.alone(max_cost_usd=2)
    found = reports(matrix.run())
    assert found["a::luna/rep0"].longrepr.reprcrash.message.startswith("budget exceeded: max_cost_usd 4 of 2; score 0")
    assert found["b::luna/rep0"].longrepr.reprcrash.message.startswith("grade did not pass: score 0")


def test_an_exceeded_budget_is_a_miss_where_only_errors_are_red(project: Project) -> None:
    matrix = Matrix(project, case("a", cost=4))
    matrix.alone(max_cost_usd=2)
    result = matrix.run("--hillclimb-fail-on=error")
    assert (result.ret, table(result, "missed").split(" - ")[1]) == (
        0,
        "budget exceeded: max_cost_usd; score 1: against None",
    )
    assert only_row(matrix)["passed"] is False


def test_what_is_not_known_exceeds_nothing(project: Project) -> None:
    matrix = Matrix(project, case("a", cost=None), case("b", luna={"cost": 5}))
    matrix.write(
        {"slots": [{"id": "s", "candidates": [{"id": "luna", "model": "unpriced", "budget": {"max_cost_usd": 1}}]}]}
    )
    result = matrix.run()
    assert result.ret == 0
    why = "there is no price for model 'unpriced'; prices come from hillclimb_prices"
    assert table(result, "cost") == f"cost 1 usage not priced ({why}), 1 execution of unknown cost"
    assert [row["meta"]["budget_unjudged"] for row in matrix.rows().values()] == [["max_cost_usd"]] * 2
    assert table(result, "warning") == ("warning luna: max_cost_usd not judged in 2 executions: there is no usage"), (
        "once for a candidate"
    )
    assert not any("budget_exceeded" in row["meta"] for row in matrix.rows().values())
    assert table(result, "luna") == "luna 2 0 0 0 not priced 1.000"


# --- attempts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "tries"), [({"max_attempts": 1}, 1), ({"max_attempts": 2}, 2), ({}, 2)])
def test_attempts_are_bounded(project: Project, budget: dict[str, Any], tries: int) -> None:
    matrix = Matrix(project, case("a", infra="retryable"))
    matrix.alone(**budget)
    assert matrix.run().ret == 1
    [row] = matrix.errors().values()
    assert (row["failure_class"], row["retries"], len(row["attempts"])) == ("infrastructure", tries - 1, tries)
    assert len(matrix.calls()) == tries


# --- latency ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "timeout", "told"),
    [
        ({"max_latency_ms": 100}, 20, "exceeded 0.1s wall-clock ceiling (max_latency_ms of luna)"),
        ({"max_latency_ms": 100}, 0, "exceeded 0.1s wall-clock ceiling (max_latency_ms of luna)"),
        ({"max_latency_ms": 20_000}, 0.1, "exceeded 0.1s wall-clock ceiling in"),
        ({}, 0.1, "exceeded 0.1s wall-clock ceiling in"),
    ],
)
def test_the_tighter_of_latency_and_timeout_ends_a_trial(
    project: Project, budget: dict[str, Any], timeout: float, told: str
) -> None:
    matrix = Matrix(project, case("a", sleep=0.4))
    matrix.alone(**budget)
    assert matrix.run(f"--hillclimb-timeout={timeout}").ret == 1
    [row] = matrix.errors().values()
    assert row["failure_class"] == "timeout"
    assert told in row["error"]
    assert row["meta"]["classification"] == "infrastructure_failure"


def test_latency_does_not_end_what_is_in_time(project: Project) -> None:
    matrix = Matrix(project, case("a", sleep=0.05))
    matrix.alone(max_latency_ms=20_000)
    assert matrix.run("--hillclimb-timeout=0").ret == 0
