"""What may be started next, on the real engine: money that is left, waits that servers ask for, and stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from engine_lab import PATIENCE_S, eventually, outcome_of

from pytest_hillclimb.engine.app import App, Context
from pytest_hillclimb.engine.engine import Engine
from pytest_hillclimb.engine.ledger import Ledger
from pytest_hillclimb.engine.outcome import Kind
from pytest_hillclimb.engine.trial import Trial
from pytest_hillclimb.errors import InfrastructureError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.prices import PriceTable
from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.schedule.plan import plan

PRICES = PriceTable({}).with_prices({"m": {"in": 1_000_000, "out": 0}}, "test")  # one token costs one US dollar


class Busy(Exception):
    """A server that asks to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__("too many requests")
        self.status_code = 429
        self.response = {"headers": {"retry-after-ms": str(int(seconds * 1000))}}


def used(tokens: int) -> dict[str, Any]:
    return {"output": "x", "model": "m", "usage": {"input_tokens": tokens, "output_tokens": 0}}


class Bank:
    """An engine with a ledger, and what becomes of its trials."""

    def __init__(
        self, run_case: Callable[[Case, Context], object], settings: Settings, width: int, ceiling: float | None
    ) -> None:
        self.calls: list[str] = []
        self.notices: list[str] = []
        self.ended: list[str] = []
        self.ledger = Ledger(ceiling) if ceiling is not None else None
        self.engine = Engine(
            width,
            on_end=lambda trial: self.ended.append(trial.execution.case.id),
            warn=lambda _: None,
            notice=self.notices.append,
            ledger=self.ledger,
        )

        def call(case: Case, ctx: Context) -> object:
            self.calls.append(case.id)
            return run_case(case, ctx)

        self._app = App(
            run_case=call,
            grade_case=lambda case, run, ref, ctx: True,
            perf=lambda case, run: [],
            grade_is_async=False,
            reference=lambda id_: None,
            signal=lambda error: None,
            settings=settings,
            state={},
            prices=PRICES,
        )

    def trials(self, **worst: float | None) -> list[Trial]:
        """Return new trials, each with what may be spent on it."""
        executions = plan([Case(id=name) for name in worst], 1)
        return [Trial(e, self._app, self.engine, e.order, worst[e.case.id]) for e in executions]

    def run(self, **worst: float | None) -> dict[str, Trial]:
        trials = self.trials(**worst)
        self.engine.add(trials)
        self.wait(trials)
        return {trial.execution.case.id: trial for trial in trials}

    def wait(self, trials: list[Trial]) -> None:
        eventually(lambda: all(trial.execution.case.id in self.ended for trial in trials))
        assert self.engine.wait_idle(PATIENCE_S)

    @property
    def spent(self) -> float:
        assert self.ledger is not None
        return self.ledger.spent


MakeBank = Callable[..., Bank]


@pytest.fixture
def bank(temporary: Path, tmp_path: Path) -> Iterator[MakeBank]:
    banks: list[Bank] = []

    def make(
        run_case: Callable[[Case, Context], object] = lambda case, ctx: used(1),
        *,
        width: int = 4,
        ceiling: float | None = None,
        timeout: float = PATIENCE_S,
    ) -> Bank:
        banks.append(Bank(run_case, Settings(flow="f", flow_base=tmp_path, timeout=timeout), width, ceiling))
        return banks[-1]

    yield make
    for each in banks:
        each.engine.close(hurried=True)


def withheld(trials: dict[str, Trial]) -> list[str]:
    return [name for name, trial in trials.items() if outcome_of(trial).withheld]


# --- money ------------------------------------------------------------------------------------------------------------


def test_no_more_run_at_once_than_could_be_paid_for(bank: MakeBank) -> None:
    running, most = set(), []
    lock = threading.Lock()

    def run_case(case: Case, ctx: Context) -> object:
        with lock:
            running.add(case.id)
            most.append(len(running))
        time.sleep(0.01)
        with lock:
            running.discard(case.id)
        return used(0)

    trials = bank(run_case, width=8, ceiling=5).run(**{f"t{i}": 2 for i in range(12)})
    assert max(most) == 2
    assert withheld(trials) == []


def test_what_cannot_be_paid_for_waits_for_what_is_in_flight(bank: MakeBank) -> None:
    let_go = threading.Event()

    def run_case(case: Case, ctx: Context) -> object:
        if case.id == "first":
            let_go.wait(PATIENCE_S)
        return used(1)

    lab = bank(run_case, ceiling=4)
    trials = lab.trials(first=3, dear=3, cheap=1)
    lab.engine.add(trials)
    eventually(lambda: lab.calls == ["first"])
    time.sleep(0.05)
    assert lab.calls == ["first"], "nothing overtakes what waits, or it might wait for ever"
    let_go.set()
    lab.wait(trials)
    assert lab.calls[1] == "dear"
    assert (lab.spent, [outcome_of(t).withheld for t in trials]) == (3, [False] * 3)


def test_what_can_never_be_paid_for_is_skipped_and_a_cheaper_one_is_not(bank: MakeBank) -> None:
    lab = bank(width=1, ceiling=4)
    trials = lab.run(a=2, dear=4, cheap=3, free=0, last=1)
    assert withheld(trials) == ["dear"]
    outcome = outcome_of(trials["dear"])
    assert (outcome.kind, outcome.row, outcome.charged, outcome.classification) == (Kind.SKIPPED, None, 0, "skipped")
    assert outcome.reason == "cost ceiling: 1.0000 of 4 USD are spent, and this execution may cost 4"
    assert lab.calls == ["a", "cheap", "free", "last"]
    assert lab.spent == 4


def test_nothing_is_free_when_all_is_spent(bank: MakeBank) -> None:
    trials = bank(width=1, ceiling=1).run(a=1, free=0)
    assert withheld(trials) == ["free"]


def test_all_lanes_take_up_work_when_a_dear_trial_has_ended(bank: MakeBank) -> None:
    together = threading.Barrier(4)

    def run_case(case: Case, ctx: Context) -> object:
        if case.id == "dear":
            time.sleep(0.05)
        else:
            together.wait(PATIENCE_S)
        return used(0)

    trials = bank(run_case, width=4, ceiling=4).run(dear=4, a=1, b=1, c=1, d=1)
    assert {outcome_of(trial).kind for trial in trials.values()} == {Kind.SCORED}


@pytest.mark.parametrize("width", [1, 4, 32])
def test_spend_never_passes_the_ceiling_by_what_was_not_reserved(bank: MakeBank, width: int) -> None:
    chance = Random(width)
    worst = {f"t{i}": chance.randint(1, 6) for i in range(60)}
    cost = {name: chance.randint(0, limit) for name, limit in worst.items()}
    lab = bank(lambda case, ctx: used(cost[case.id]), width=width, ceiling=50)
    trials = lab.run(**worst)
    assert lab.spent == sum(cost[name] for name in lab.calls) <= 50
    assert lab.spent == sum(outcome_of(trial).charged for trial in trials.values())
    assert sorted([*lab.calls, *withheld(trials)]) == sorted(worst)
    assert all(lab.spent + worst[name] > 50 for name in withheld(trials)), "each was too dear, to the end"


def test_without_a_ceiling_nothing_is_charged(bank: MakeBank) -> None:
    trials = bank().run(a=None, b=None)
    assert [outcome_of(trial).charged for trial in trials.values()] == [0, 0]


@pytest.mark.parametrize("width", [1, 8])
def test_tries_that_fail_never_carry_spend_over_the_ceiling(bank: MakeBank, width: int) -> None:
    """Each may cost its worst case, and has it set aside before it is made."""

    def run_case(case: Case, ctx: Context) -> object:
        raise Spent("sandbox_lost", True, "the sandbox is gone")

    class Spent(InfrastructureError):
        model, usage = "m", {"input_tokens": 2, "output_tokens": 0}

    lab = bank(run_case, width=width, ceiling=11)
    lab.run(**{f"t{i}": 2 for i in range(8)})
    assert lab.spent == 2 * len(lab.calls) <= 11
    assert len(lab.calls) == 5
    if width == 1:
        assert lab.calls == ["t0", "t0", "t1", "t1", "t2"]


class Lost(InfrastructureError):
    """Does not say what it has cost."""

    def __init__(self) -> None:
        super().__init__("sandbox_lost", True, "the sandbox is gone")


@pytest.mark.parametrize("width", [1, 8])
def test_every_try_of_unknown_cost_is_charged_with_what_was_reserved(bank: MakeBank, width: int) -> None:
    def run_case(case: Case, ctx: Context) -> object:
        raise Lost

    lab = bank(run_case, width=width, ceiling=10)
    lab.run(**{f"t{i}": 1 for i in range(10)})
    assert lab.spent == len(lab.calls) == 10


def test_another_try_waits_for_what_others_give_back(bank: MakeBank) -> None:
    """All that is left is set aside for trials in flight, which cost next to nothing."""
    together = threading.Barrier(4)

    def run_case(case: Case, ctx: Context) -> object:
        if ctx.attempt == 1:
            together.wait(PATIENCE_S)
        if case.id == "a" and ctx.attempt == 1:
            raise Lost
        time.sleep(0.1)
        return used(0)

    trials = bank(run_case, width=4, ceiling=4).run(a=1, b=1, c=1, d=1)
    assert {outcome_of(trial).kind for trial in trials.values()} == {Kind.SCORED}
    assert outcome_of(trials["a"]).charged == 1


def test_tries_that_have_spent_little_do_not_keep_one_another_from_being_made_again(bank: MakeBank) -> None:
    """All that is left is set aside for them, and all fail at once."""
    together = threading.Barrier(4)

    class Cheap(InfrastructureError):
        model, usage = "m", {"input_tokens": 0, "output_tokens": 0}

    def run_case(case: Case, ctx: Context) -> object:
        if ctx.attempt == 1:
            together.wait(PATIENCE_S)
            raise Cheap("sandbox_lost", True, "the sandbox is gone")
        return used(1)

    lab = bank(run_case, width=4, ceiling=4)
    trials = lab.run(a=1, b=1, c=1, d=1)
    assert {outcome_of(trial).kind for trial in trials.values()} == {Kind.SCORED}
    assert lab.spent == 4


def test_tries_that_all_wait_for_one_another_do_not_wait_for_ever(bank: MakeBank) -> None:
    together = threading.Barrier(2)

    def run_case(case: Case, ctx: Context) -> object:
        if ctx.attempt == 1:
            together.wait(PATIENCE_S)
            raise Lost
        return used(0)

    trials = bank(run_case, width=2, ceiling=2).run(a=1, b=1)
    rows = [outcome_of(trial).row for trial in trials.values()]
    assert [row and (row["failure_class"], row["not_retried"]) for row in rows] == [
        ("infrastructure", "cost ceiling")
    ] * 2


def test_an_interrupted_trial_costs_what_was_reserved(bank: MakeBank) -> None:
    let_go = threading.Event()
    lab = bank(lambda case, ctx: let_go.wait(PATIENCE_S), ceiling=5)
    lab.engine.add(lab.trials(a=3))
    eventually(lambda: lab.calls == ["a"])
    lab.engine.close(hurried=True)
    let_go.set()
    assert lab.spent == 3


def test_a_stop_leaves_what_waits_for_money_alone(bank: MakeBank) -> None:
    let_go = threading.Event()

    def run_case(case: Case, ctx: Context) -> object:
        let_go.wait(PATIENCE_S)
        return used(0)

    lab = bank(run_case, ceiling=2)
    first, second = lab.trials(a=2, b=2)
    lab.engine.add([first, second])
    eventually(lambda: lab.calls == ["a"])
    lab.engine.stop()
    let_go.set()
    lab.wait([first])
    assert (second.taken, second.outcome, lab.calls) == (False, None, ["a"])


# --- pauses that servers ask for --------------------------------------------------------------------------------------


def test_nothing_new_is_started_while_a_server_asks_to_wait(bank: MakeBank) -> None:
    seconds, began = 0.3, {}
    both, asked = threading.Event(), []

    def run_case(case: Case, ctx: Context) -> object:
        began.setdefault(f"{case.id} {ctx.attempt}", time.monotonic())
        if case.id == "b":
            both.set()
            eventually(lambda: asked)
            time.sleep(0.2)  # by then the engine knows
        if case.id == "a" and ctx.attempt == 1:
            both.wait(PATIENCE_S)
            asked.append(time.monotonic())
            raise Busy(seconds)
        return used(1)

    lab = bank(run_case, width=2)
    trials = lab.run(a=None, b=None, c=None, d=None)
    assert {outcome_of(trial).kind for trial in trials.values()} == {Kind.SCORED}
    assert all(began[later] - asked[0] >= seconds for later in ("a 2", "c 1", "d 1"))
    assert lab.notices == []


def test_the_gate_is_one_for_all_and_the_longest_wait_counts(bank: MakeBank) -> None:
    lab = bank(width=2)
    lab.engine.pause(0.3, "a rep0")
    lab.engine.pause(0.05, "b rep0")
    began = time.monotonic()
    lab.run(a=None, b=None, c=None)
    assert time.monotonic() - began >= 0.25


def test_what_is_needed_at_once_waits_too(bank: MakeBank) -> None:
    lab = bank(width=1)
    lab.engine.pause(0.2, "x rep0")
    began = time.monotonic()
    [trial] = lab.trials(a=None)
    lab.engine.need(trial)
    lab.wait([trial])
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize("seconds", [0.001, 0.002, 0.003])
def test_no_lane_oversleeps_the_end_of_a_pause(bank: MakeBank, seconds: float) -> None:
    lab = bank(width=3)
    for _ in range(15):
        lab.engine.pause(seconds, "x rep0")
        lab.run(a=None, b=None, c=None)
        lab.ended.clear()


def test_long_waits_are_told_once(bank: MakeBank) -> None:
    lab = bank()
    for seconds in (1.0, 7.4, 5.0):
        lab.engine.pause(seconds, "a rep0")
    assert lab.notices == ["a rep0: the server asks to wait 7 s; nothing new is started until then"]


def test_others_wait_as_long_as_the_server_asks_also_beyond_the_ceiling_of_a_trial(bank: MakeBank) -> None:
    def run_case(case: Case, ctx: Context) -> object:
        if case.id == "a":
            raise Busy(1.2)
        return used(1)

    lab = bank(run_case, width=1, timeout=0.3)
    began = time.monotonic()
    trials = lab.run(a=None, b=None)
    row = outcome_of(trials["a"]).row
    assert row is not None
    assert (row["failure_class"], row["not_retried"]) == ("rate_limited", "another try would pass the deadline")
    assert outcome_of(trials["b"]).kind is Kind.SCORED
    assert 1.2 <= time.monotonic() - began < PATIENCE_S / 2


def test_a_stop_during_a_pause_ends_the_wait_and_starts_nothing(bank: MakeBank) -> None:
    def run_case(case: Case, ctx: Context) -> object:
        raise Busy(10)

    lab = bank(run_case, width=2)
    first, second = lab.trials(a=None, b=None)
    lab.engine.add([first])
    eventually(lambda: first.pausing)
    lab.engine.add([second])
    began = time.monotonic()
    lab.engine.stop()
    lab.wait([first])
    assert outcome_of(first).failure_class == "rate_limited"
    lab.engine.close()
    assert time.monotonic() - began < PATIENCE_S / 2
    assert (second.taken, lab.calls) == (False, ["a"])
