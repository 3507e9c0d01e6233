"""The eight scenarios, and the cases that they become."""

from __future__ import annotations

from pytest_hillclimb.catalog import entries_from
from pytest_hillclimb.chaos.scenarios import SCENARIOS, Scenario, scenario_cases

IN_ORDER = [
    ("chaos-restart", "restart"),
    ("chaos-duplicate-delivery", "duplicate_delivery"),
    ("chaos-trace-interruption", "trace_interruption"),
    ("chaos-trace-truncation", "trace_truncation"),
    ("chaos-stale-checkpoint", "stale_checkpoint"),
    ("chaos-retry-exhaustion", "retry_exhaustion"),
    ("chaos-interaction-timeout", "interaction_timeout"),
    ("chaos-wake-race", "wake_race"),
]


def test_ids_and_faults() -> None:
    assert [(scenario.id, scenario.fault) for scenario in SCENARIOS] == IN_ORDER


def test_each_says_what_it_is_about() -> None:
    assert len({scenario.invariant for scenario in SCENARIOS}) == len(SCENARIOS)
    assert len({scenario.description for scenario in SCENARIOS}) == len(SCENARIOS)
    for scenario in SCENARIOS:
        assert scenario.phases
        assert all(scenario.parameters.values()), "a parameter without a choice"
        assert hash(scenario) == hash(Scenario(*(getattr(scenario, name) for name in Scenario.__match_args__)))


def test_cases() -> None:
    cases = scenario_cases()
    assert [case.id for case in cases] == [case.safe_id for case in cases] == [id_ for id_, _ in IN_ORDER]
    assert [case.tags for case in cases] == [("chaos", fault) for _, fault in IN_ORDER]
    assert [case.meta for case in cases] == [{"fault": fault} for _, fault in IN_ORDER]
    assert [case.expected for case in cases] == [scenario.invariant for scenario in SCENARIOS]
    assert [entry.case for entry in entries_from(cases, "chaos")] == cases


def test_cases_of_some() -> None:
    assert [case.id for case in scenario_cases(SCENARIOS[6:])] == ["chaos-interaction-timeout", "chaos-wake-race"]
