"""The ceiling of a campaign: what is reserved before a trial starts, what is charged after it, and what it stops.

A token costs one US dollar, and luna may cost two of them unless a test says otherwise.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from eval_project import Project, refused
from matrix_project import PRICES, Matrix, candidate, case, counts, reasons, table

CEILING = "--hillclimb-max-cost"


@pytest.fixture(autouse=True)
def _no_ceiling_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HILLCLIMB_MAX_COST_USD", raising=False)


def luna(project: Project, *cases: dict[str, Any], **budget: Any) -> Matrix:
    matrix = Matrix(project, *cases)
    matrix.alone(**(budget or {"max_cost_usd": 2}))
    return matrix


def cases(number: int, **does: Any) -> list[dict[str, Any]]:
    return [case(f"c{i}", **does) for i in range(number)]


def charged(result: pytest.RunResult) -> float:
    found = re.match(r"ceiling ([\d.]+) of [\d.]+ USD charged", table(result, "ceiling"))
    assert found is not None
    return float(found[1])


# --- what it stops ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 4, 32])
@pytest.mark.parametrize("cost", [1, 2])
def test_spend_stays_below_the_ceiling_however_many_run_at_once(project: Project, concurrency: int, cost: int) -> None:
    matrix = luna(project, *cases(20, cost=cost, sleep=0.01))
    result = matrix.run(f"{CEILING}=9", f"--hillclimb-concurrency={concurrency}", "-rs", "--junitxml=junit.xml")
    ran = {1: 8, 2: 4}[cost]
    assert (len(matrix.calls()), len(matrix.rows())) == (ran, ran)
    assert charged(result) == ran * cost <= 9
    assert result.ret == 1
    assert counts(result) == {"passed": ran, "skipped": 20 - ran}
    told = f"cost ceiling: {ran * cost:.4f} of 9 USD are spent, and this execution may cost 2"
    assert reasons(result) == [told] * (20 - ran)
    assert table(result, "ceiling").endswith(f"it kept {20 - ran} executions from being run")
    assert table(result, "luna") == f"luna {ran} 0 0 {20 - ran} {ran * cost:.4f} 1.000"
    assert "worst case 40.00 USD, cost ceiling 9 USD; it may end before all are run" in result.stdout.str()
    skipped = [properties for kind, properties in matrix.junit().values() if kind == "skipped"]
    assert {properties["classification"] for properties in skipped} == {"skipped"}
    assert len(skipped) == 20 - ran
    assert matrix.errors() == {}


def test_a_ceiling_that_is_reached_exactly_is_kept(project: Project) -> None:
    matrix = luna(project, *cases(3, cost=2))
    result = matrix.run(f"{CEILING}=6")
    assert (result.ret, counts(result)) == (0, {"passed": 3})
    assert table(result, "ceiling") == "ceiling 6.0000 of 6 USD charged"


def test_a_cheaper_execution_may_still_be_run(project: Project) -> None:
    matrix = Matrix(project, *cases(2))
    matrix.candidates(candidate("luna", max_cost_usd=3), second=[candidate("kimi", max_cost_usd=1)])
    result = matrix.run(f"{CEILING}=4", "-rs", "--hillclimb-concurrency=1")
    assert matrix.calls() == ["c0 luna/rep0", "c0 kimi/rep0", "c1 kimi/rep0"]
    assert reasons(result) == ["cost ceiling: 2.0000 of 4 USD are spent, and this execution may cost 3"]


def test_the_next_session_goes_on(project: Project) -> None:
    matrix = luna(project, *cases(5))
    assert matrix.run(f"{CEILING}=3").ret == 1
    assert len(matrix.rows()) == 2
    result = matrix.run(f"{CEILING}=4")
    assert "5 selected: 2 recorded, 3 to run" in result.stdout.str()
    assert (result.ret, len(matrix.rows()), len(matrix.calls())) == (0, 5, 5)


def test_what_is_recorded_needs_no_money(project: Project) -> None:
    matrix = luna(project, *cases(2))
    matrix.run()
    result = matrix.run(f"{CEILING}=0.5")
    assert (result.ret, counts(result)) == (0, {"passed": 2})
    assert charged(result) == 0
    assert "is below the 2 USD" in refused(matrix.run(f"{CEILING}=0.5", "--hillclimb-fresh"))
    assert matrix.run(f"{CEILING}=2.5", "--hillclimb-fresh").ret == 1
    assert len(matrix.calls()) == 3


def test_a_first_failure_ends_the_run_before_the_ceiling_does(project: Project) -> None:
    matrix = luna(project, case("a", grade=False), *cases(5))
    result = matrix.run(f"{CEILING}=6", "-x", "--hillclimb-concurrency=1")
    assert counts(result) == {"failed": 1}
    assert charged(result) <= 2
    assert table(result, "not").startswith("not tried ")


def test_the_unqualified_take_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LUNA_KEY", raising=False)
    matrix = Matrix(project, *cases(2))
    matrix.candidates(candidate("luna", env="LUNA_KEY", max_cost_usd=2), second=[candidate("kimi", max_cost_usd=1)])
    result = matrix.run(f"{CEILING}=2")
    assert (result.ret, counts(result)) == (0, {"passed": 2, "skipped": 2})
    assert "worst case 2.00 USD" in result.stdout.str()


# --- what is charged --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("does", "usd"),
    [
        ({"cost": 1}, 1),
        ({"cost": 5}, 5),
        ({"cost": 1, "judge": 4}, 5),
        ({"infra": "retryable", "times": 1, "fails_for": 3, "cost": 1}, 4),
        ({"infra": "retryable", "fails_for": 3}, 6),
        ({"infra": "final", "fails_for": 1}, 1),
        ({"infra": "final"}, 2),
        ({"infra": "retryable", "times": 1, "cost": 1}, 3),
        ({"raises": "kaput"}, 2),
        ({"sleep": 0.3}, 2),
        ({"cost": None}, 2),
        ({"cost": None, "judge": 4}, 6),
        ({"cost": 1, "served": "another-1"}, 2),
        ({"cost": 1, "served": "kimi-1"}, 1),
        ({"cost": 1, "skips_grading": True}, 2),
        ({"cost": 3, "skips_grading": True}, 3),
        ({"infra": "retryable", "times": 1, "fails_for": 1, "cost": None}, 3),
        ({"skips": "not today"}, 0),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else None,
)
def test_the_ceiling_is_charged_with_what_is_known_and_else_with_what_was_reserved(
    project: Project, does: dict[str, Any], usd: float
) -> None:
    matrix = luna(project, case("a", **does))
    assert charged(matrix.run(f"{CEILING}=50", "--hillclimb-timeout=0.15")) == usd


def test_what_was_charged_stops_what_comes_next(project: Project) -> None:
    matrix = luna(project, case("a", cost=1, judge=4), case("z"))
    result = matrix.run(f"{CEILING}=6", "--hillclimb-concurrency=1", "-rs")
    assert matrix.calls() == ["a luna/rep0"]
    # Its own worst case, and what the dearest judging so far has cost.
    assert reasons(result) == ["cost ceiling: 5.0000 of 6 USD are spent, and this execution may cost 6"]


@pytest.mark.parametrize(
    ("fails_for", "ceiling", "tries", "usd"),
    [(1, 3, 2, 2), (1, 2.9, 1, 1), (2, 4, 2, 3), (2, 3.9, 1, 2), (None, 4, 2, 3), (None, 3.9, 1, 2)],
)
def test_another_try_is_made_if_it_can_be_paid_for(
    project: Project, fails_for: int | None, ceiling: float, tries: int, usd: float
) -> None:
    """What the first try has spent, or may have, counts, and another worst case must be left."""
    matrix = luna(project, case("a", infra="retryable", times=1, fails_for=fails_for, cost=1))
    result = matrix.run(f"{CEILING}={ceiling}")
    assert (len(matrix.calls()), charged(result)) == (tries, usd)
    assert counts(result) == {"passed" if tries == 2 else "errors": 1}
    if tries == 1:
        assert matrix.errors()["a.luna_rep0"]["retries"] == 0


def test_a_budget_of_nothing_still_pays_for_what_was_used(project: Project) -> None:
    matrix = luna(project, case("a", cost=2), case("b"), max_cost_usd=0)
    result = matrix.run(f"{CEILING}=2", "--hillclimb-concurrency=1")
    assert matrix.calls() == ["a luna/rep0"]
    assert matrix.rows()["a.luna_rep0"]["meta"]["budget_exceeded"] == ["max_cost_usd"]
    assert (charged(result), result.ret) == (2, 1)


def test_a_limit_of_tokens_bounds_the_cost_of_a_priced_model(project: Project) -> None:
    """At the price of a cache write for an hour, the highest of all: twice that of input."""
    matrix = luna(project, *cases(3), max_total_tokens=1)
    assert matrix.run(f"{CEILING}=3", "--hillclimb-concurrency=1").ret == 1
    assert len(matrix.calls()) == 2


# --- what has no price ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "budget", "words"),
    [
        ("unpriced", {"max_cost_usd": 2}, ["luna (unpriced)", "hillclimb_prices", "--hillclimb-trial-cost"]),
        ("unpriced", {"max_cost_usd": 0}, ["luna (unpriced)", "has no price"]),
        ("luna-1", {}, ["luna (luna-1)", "not known", "max_cost_usd", "--hillclimb-trial-cost"]),
        ("luna-1", {"max_cost_usd": 12.5}, ["12 USD is below the 12.5 USD that one execution may cost"]),
    ],
)
def test_a_ceiling_over_what_has_no_price_is_refused(
    project: Project, model: str, budget: dict[str, Any], words: list[str]
) -> None:
    matrix = Matrix(project)
    matrix.write({"slots": [{"id": "s", "candidates": [{"id": "luna", "model": model, "budget": budget}]}]})
    told = refused(matrix.run(f"{CEILING}=12"))
    assert told.startswith("--hillclimb-max-cost: ")
    for word in words:
        assert word in told
    assert matrix.calls() == []


@pytest.mark.parametrize("budget", [{}, {"max_cost_usd": 0}])
def test_a_stated_rate_is_charged_for_what_has_no_price(project: Project, budget: dict[str, Any]) -> None:
    matrix = Matrix(project, *cases(5))
    matrix.write({"slots": [{"id": "s", "candidates": [{"id": "luna", "model": "unpriced", "budget": budget}]}]})
    result = matrix.run(f"{CEILING}=1", "--hillclimb-trial-cost=0.3", "--hillclimb-concurrency=1", "-rs")
    assert len(matrix.calls()) == 3
    assert charged(result) == 0.9
    assert reasons(result) == ["cost ceiling: 0.9000 of 1 USD are spent, and this execution may cost 0.3"] * 2
    assert (
        table(result, "cost")
        == "cost 3 usages not priced (there is no price for model 'unpriced'; prices come from hillclimb_prices)"
    )


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "an execution without --hillclimb-model has no price"),
        (["--hillclimb-model=luna-1"], "what the model luna-1 may cost is not known"),
        (["--hillclimb-model=other"], "the usage of the model other has no price"),
    ],
)
def test_without_candidates_a_rate_is_needed(project: Project, arguments: list[str], word: str) -> None:
    matrix = Matrix(project, *cases(3))
    assert word in refused(project.approved(f"{CEILING}=2", *arguments))
    result = project.approved(f"{CEILING}=2", "--hillclimb-trial-cost=1", "--hillclimb-concurrency=1", *arguments)
    assert (result.ret, counts(result)) == (1, {"passed": 2, "skipped": 1})
    assert matrix.calls() == ["c0 -/rep0", "c1 -/rep0"]


def test_prices_come_from_the_state_too_and_the_ini_wins(project: Project) -> None:
    matrix = luna(project, *cases(2))
    prices = '{"prices": {"luna-1": {"in": 500000, "out": 0}, "kimi-1": {"in": 250000, "out": 0}}}'
    project.write(".claude/hillclimb/flow/_state.json", prices)
    project.ini(hillclimb_enabled="true", hillclimb_prices="\n    kimi-1 in=125000 out=0")
    matrix.candidates(candidate("luna", max_cost_usd=2), second=[candidate("kimi", max_cost_usd=2)])
    result = matrix.run(f"{CEILING}=12")
    assert table(result, "cost") == "cost 1.2500 USD app"
    assert charged(result) == 1.25
    assert all("cost" not in key for row in matrix.rows().values() for key in row), "rows keep usage, not money"


# --- where it is said -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "environment", "ini", "ceiling"),
    [("3", "4", "5", "3"), (None, "4", "5", "4"), (None, None, "5", "5"), (None, None, None, None)],
)
def test_the_command_line_comes_before_the_environment_and_that_before_the_ini(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    typed: str | None,
    environment: str | None,
    ini: str | None,
    ceiling: str | None,
) -> None:
    matrix = luna(project, *cases(1))
    keys = {"hillclimb_max_cost": ini} if ini else {}
    project.ini(hillclimb_enabled="true", hillclimb_prices=PRICES, **keys)
    if environment is not None:
        monkeypatch.setenv("HILLCLIMB_MAX_COST_USD", environment)
    result = matrix.run(*([f"{CEILING}={typed}"] if typed else []))
    assert result.ret == 0
    text = result.stdout.str()
    assert f"cost ceiling {ceiling} USD" in text if ceiling else "ceiling " not in text


BAD = ("0", "-1", "nan", "inf", "1_0", "12usd")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        *((where, value) for where in ("typed", "environment", "ini") for value in (*BAD, "")),
        *((where, value) for where in ("typed", "environment") for value in (" ",)),
    ],
)
def test_a_ceiling_is_a_decimal_number_above_0(
    project: Project, monkeypatch: pytest.MonkeyPatch, where: str, value: str
) -> None:
    matrix = luna(project, *cases(1))
    if where == "ini":
        project.ini(hillclimb_enabled="true", hillclimb_max_cost=value)
    if where == "environment":
        monkeypatch.setenv("HILLCLIMB_MAX_COST_USD", value)
    told = refused(matrix.run(*([f"{CEILING}={value}"] if where == "typed" else [])))
    name = {"typed": CEILING, "environment": "HILLCLIMB_MAX_COST_USD", "ini": "hillclimb_max_cost in pytest.ini"}[where]
    assert told.startswith(f"{name}: expected US dollars")


@pytest.mark.parametrize("key", ["hillclimb_trial_cost", "hillclimb_canary", "hillclimb_max_trace_bytes"])
def test_no_limit_is_lost_by_an_empty_value_in_the_ini_file(project: Project, key: str) -> None:
    matrix = luna(project, *cases(1))
    project.ini(hillclimb_enabled="true", **{key: ""})
    assert refused(matrix.run()).startswith(f"{key} in pytest.ini: expected ")
    assert matrix.calls() == []
