"""What ``ctx`` shows of the candidate: a copy of its own, so that no execution can change another one's."""

from __future__ import annotations

import math
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_hillclimb.engine.app import App, Context
from pytest_hillclimb.model.candidate import Candidate
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.schedule.plan import Execution


def context(execution: Execution, attempt: int = 1) -> Context:
    app = App(
        run_case=lambda case, ctx: None,
        grade_case=lambda case, run, ref, ctx: None,
        perf=lambda case, run: [],
        grade_is_async=False,
        reference=lambda safe_id: None,
        signal=lambda error: None,
        settings=Settings(flow="f", flow_base=Path(".")),
        state=MappingProxyType({}),
    )
    return Context(execution=execution, app=app, attempt=attempt, deadline=lambda: math.inf)


def test_a_change_of_settings_stays_with_its_ctx() -> None:
    given: dict[str, Any] = {"id": "c", "slot_id": "s", "model": "m", "settings": {"tools": ["a"], "deep": {"n": 1}}}
    candidate = Candidate.model_validate(given)
    execution = Execution(Case(id="x", prompt="?"), 0, 0, candidate)
    first, again = context(execution), context(execution, attempt=2)
    assert first.candidate is first.candidate
    changed: Any = first.candidate.settings if first.candidate is not None else {}
    changed["tools"].append("b")
    changed["deep"]["n"] = 2
    changed["new"] = True
    assert first.candidate is not None
    assert first.candidate.settings == {"tools": ["a", "b"], "deep": {"n": 2}, "new": True}
    for other in (again.candidate, candidate):
        assert other is not None
        assert other.settings == {"tools": ["a"], "deep": {"n": 1}}
    assert first.model == "m"


def test_without_a_manifest_there_is_none() -> None:
    assert context(Execution(Case(id="x", prompt="?"), 0, 0)).candidate is None
