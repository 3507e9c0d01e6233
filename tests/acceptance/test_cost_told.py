"""What the end of a session, and the reports of its items, tell of money."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from eval_project import Project

APP = """
def pytest_hillclimb_run_case(case, ctx):
    usage = {"input_tokens": case.model_extra["tokens"], "output_tokens": 0} if "tokens" in case.model_extra else None
    return {"output": "x", "model": case.model_extra.get("model", "m"), "usage": usage}


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return {"pass": case.id != "misses"}
"""
CASES = [{"id": "cheap", "tokens": 5}, {"id": "misses", "tokens": 2_000_000}, {"id": "gap"}]
PER_CASE = [
    "per case   misses: 2.0000 USD app",
    "per case   cheap: 0.000005 USD app",
    "per case   gap: 1 execution of unknown cost",
]


@pytest.fixture
def priced(project: Project) -> Project:
    """A project whose model has a price."""
    project.ini(hillclimb_enabled="true", hillclimb_prices="m in=1 out=2")
    project.write("evals/conftest.py", APP)
    project.cases(*CASES)
    return project


def lines(result: pytest.RunResult, *labels: str) -> list[str]:
    return [line for line in result.outlines if line.startswith(tuple(f"{label:<11}" for label in labels))]


def test_the_cost_of_each_case_is_told_on_demand_and_when_all_was_recorded(priced: Project) -> None:
    total = "2.0000 USD {}, 1 execution of unknown cost"
    first = lines(priced.approved(), "cost", "in all", "per case")
    assert first == [
        f"cost       {total.format('app')}",
        f"in all     {total.format('since the variant began')}; most for misses 2.0000, cheap 0.000005",
    ]
    again = priced.run("-v")
    assert "nothing was run" in again.stdout.str()
    assert lines(again, "cost", "in all", "per case") == [first[1], *PER_CASE]
    assert lines(priced.run(), "cost", "in all", "per case") == []


def test_a_fresh_run_tells_its_own_cost_alone(priced: Project) -> None:
    priced.approved()
    assert lines(priced.run("--hillclimb-fresh"), "in all", "per case") == []
    assert lines(priced.run("--hillclimb-fresh", "-v"), "in all", "per case") == PER_CASE


def test_a_recorded_item_has_its_cost_where_its_row_is_shown(priced: Project) -> None:
    priced.approved()
    priced.run("--junitxml=report.xml")
    costs = [
        each.get("value")
        for each in ElementTree.parse(priced.path / "report.xml").iter("property")
        if each.get("name") == "hillclimb.app_cost_usd"
    ]
    assert costs == ["2.0"], "of what has missed; the rows of others are not read"


def test_a_model_without_a_price_is_named_with_what_to_do(priced: Project) -> None:
    priced.cases({"id": "a", "tokens": 1, "model": "m-of-tomorrow"})
    [line] = lines(priced.approved(), "cost")
    assert "1 usage not priced (there is no price for model 'm-of-tomorrow'; prices come from hillclimb_prices)" in line


def test_an_app_without_model_and_usage_has_no_line_on_cost(priced: Project) -> None:
    priced.cases({"id": "a", "model": None})
    assert lines(priced.approved("-v"), "cost", "in all", "per case") == []
