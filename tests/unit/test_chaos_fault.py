"""A fault: chosen by seed alone, and believed to have fired only by what was reported of it."""

from __future__ import annotations

import math
import random
import threading
from typing import Any

import pytest

from pytest_hillclimb.chaos.fault import Fault
from pytest_hillclimb.chaos.scenarios import SCENARIOS, Scenario

RESTART = SCENARIOS[0]


def fault(scenario: Scenario = RESTART, seed: int = 7, attempt: int = 1) -> Fault:
    return Fault(scenario, seed, attempt=attempt, remaining=lambda: 5.0)


def test_what_it_tells() -> None:
    given = fault(SCENARIOS[3], seed=0xABC, attempt=2)
    assert (given.id, given.kind) == ("chaos-trace-truncation-00000abc-2", "trace_truncation")
    assert given.invariant == SCENARIOS[3].invariant
    assert given.phase in SCENARIOS[3].phases
    assert given.parameters["cap_bytes"] == 1024
    assert given.remaining() == 5.0
    assert Fault(RESTART, 1, attempt=1, remaining=lambda: math.inf).remaining() == math.inf


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_seed_alone_chooses(scenario: Scenario) -> None:
    def choices(seed: int, attempt: int = 1) -> tuple[str, dict[str, Any]]:
        random.seed(attempt)
        given = fault(scenario, seed, attempt)
        return given.phase, given.parameters

    state = random.getstate()
    assert choices(3) == choices(3, attempt=2)
    assert {choices(seed)[0] for seed in range(60)} == set(scenario.phases)
    for name, possible in scenario.parameters.items():
        assert {choices(seed)[1][name] for seed in range(60)} == set(possible)
    random.setstate(state)


def test_choices_are_the_same_on_every_machine() -> None:
    assert [fault(seed=seed).phase for seed in range(6)] == [
        "turn",
        "turn",
        "finalisation",
        "result",
        "turn",
        "finalisation",
    ]


def test_firing() -> None:
    given = fault()
    assert (given.fired, given.evidence) == (False, ())
    given.fire()
    given.fire("  ")
    assert (given.fired, given.evidence) == (True, ())
    given.fire("pid 12")
    given.fire(7)
    given.fire("pid 12")
    assert given.evidence == ("pid 12", "7")
    assert "fired" in repr(given)


@pytest.mark.parametrize("evidence", [True, 1.5, b"x", ["a"]])
def test_evidence_is_an_id(evidence: Any) -> None:
    given = fault()
    with pytest.raises(TypeError, match="expected an id"):
        given.fire(evidence)
    assert not given.fired


def test_evidence_from_many_threads() -> None:
    given, barrier = fault(), threading.Barrier(8)

    def report(number: int) -> None:
        barrier.wait()
        for n in range(50):
            given.fire(f"{number}-{n}")
            assert given.evidence

    threads = [threading.Thread(target=report, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(given.evidence) == sorted(f"{number}-{n}" for number in range(8) for n in range(50))
