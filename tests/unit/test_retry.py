"""How often and after what waits a failed call is made again, with a pause that only takes note."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Iterable
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hillclimb.engine.retry import MAX_TRIES, RetryPolicy
from pytest_hillclimb.errors import InfrastructureError


class Status(Exception):
    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"status {status}")
        self.response = SimpleNamespace(
            status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )


class Calls:
    """A call that fails with the given exceptions in turn and then succeeds, made under a retry policy.

    Its clock is advanced by waits alone: ``budget`` seconds are left to the deadline at the start.
    """

    def __init__(
        self, failures: Iterable[BaseException], *, budget: float = math.inf, stop_after: float = math.inf
    ) -> None:
        self.made = 0
        self.waits: list[float] = []
        self.noted: list[BaseException] = []
        self._failures = list(failures)
        self._left = budget
        self.policy = RetryPolicy(
            deadline=lambda: monotonic() + self._left,
            stopping=lambda: self.made >= stop_after,
            on_retry=self.noted.append,
        )

    def run(self) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading.Event, "wait", self._wait)
            return self.policy.call(self.attempt)

    def attempt(self) -> str:
        self.made += 1
        if self.made <= len(self._failures):
            raise self._failures[self.made - 1]
        return "answer"

    def _wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self._left -= seconds
        return False


def test_a_call_that_succeeds_is_made_once() -> None:
    calls = Calls([])
    assert calls.run() == "answer"
    assert (calls.made, calls.waits, calls.noted) == (1, [], [])


@pytest.mark.parametrize("failures", [1, 2, 4])
def test_a_call_is_made_again_until_it_succeeds_and_each_retry_is_told(failures: int) -> None:
    errors = [Status(529) for _ in range(failures)]
    calls = Calls(errors)
    assert calls.run() == "answer"
    assert calls.made == failures + 1
    assert calls.noted == errors


def test_the_fifth_failure_is_the_last_and_is_raised_itself() -> None:
    errors = [Status(429) for _ in range(9)]
    calls = Calls(errors)
    with pytest.raises(Status) as caught:
        calls.run()
    assert caught.value is errors[4]
    assert MAX_TRIES == calls.made == 5
    assert len(calls.waits) == 4


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), Status(400), Status(401), Status(404), KeyboardInterrupt(), SystemExit(2), GeneratorExit()],
)
def test_what_does_not_pass_by_itself_is_raised_at_once(error: BaseException) -> None:
    calls = Calls([error])
    with pytest.raises(type(error)) as caught:
        calls.run()
    assert caught.value is error
    assert (calls.made, calls.waits) == (1, [])


def test_waits_double_and_are_spread_by_half_around_their_base() -> None:
    by_try: list[list[float]] = [[], [], [], []]
    for _ in range(100):
        calls = Calls([Status(503)] * 4)
        calls.run()
        for waits, wait in zip(by_try, calls.waits, strict=True):
            waits.append(wait)
    for waits, base in zip(by_try, (1, 2, 4, 8), strict=True):
        assert all(0.5 * base <= wait <= 1.5 * base for wait in waits)
        assert min(waits) < 0.9 * base
        assert max(waits) > 1.1 * base


def test_an_app_that_seeds_the_global_generator_does_not_bring_waits_into_step() -> None:
    first = []
    for _ in range(8):
        random.seed(0)
        calls = Calls([Status(503)])
        calls.run()
        first += calls.waits
    assert len(set(first)) > 1


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry_after": "7"}, 7, 7),
        ({"retry_after": "0"}, 0.5, 1.5),
        ({"retry_after": "0.6"}, 0.6, 1.5),
        ({"retry_after": "-5"}, 0.5, 1.5),
        ({"retry_after": "soon"}, 0.5, 1.5),
        ({"retry_after": "90"}, 90, 90),
        ({"retry_after_ms": "2500"}, 2.5, 2.5),
    ],
)
def test_the_server_may_ask_for_a_longer_wait_but_not_for_a_shorter_one(
    headers: dict[str, str], low: float, high: float
) -> None:
    calls = Calls([Status(429, **headers)])
    calls.run()
    assert low <= calls.waits[0] <= high


def test_a_wait_that_would_outlive_the_deadline_is_not_begun() -> None:
    error = Status(429, retry_after="90")
    calls = Calls([error], budget=60)
    with pytest.raises(Status) as caught:
        calls.run()
    assert caught.value is error
    assert (calls.made, calls.waits, calls.noted) == (1, [], [])


@pytest.mark.parametrize("budget", [0.4, 2.0, 5.0, 12.0])
def test_all_waits_together_stay_before_the_deadline(budget: float) -> None:
    for _ in range(20):
        calls = Calls([Status(503)] * 9, budget=budget)
        with pytest.raises(Status):
            calls.run()
        assert sum(calls.waits) < budget


def test_nothing_is_tried_again_once_the_run_is_stopping() -> None:
    calls = Calls([Status(503)] * 9, stop_after=2)
    with pytest.raises(Status):
        calls.run()
    assert calls.made == 2
    assert len(calls.waits) == 1


def broken(retryable: bool = True) -> InfrastructureError:
    return InfrastructureError("sandbox_lost", retryable, "the sandbox is gone")


@pytest.mark.parametrize(
    ("failures", "made"),
    [
        ([broken()], 2),
        ([broken(), broken(), broken()], 2),
        ([broken(retryable=False)], 1),
        ([broken(), broken(retryable=False)], 2),
        ([broken(), Status(529), Status(529)], 4),
        ([broken(), Status(529), broken(), Status(529)], 3),
        ([Status(529), Status(529), Status(529), Status(529), broken()], 5),
    ],
)
def test_an_infrastructure_error_is_tried_again_once_in_all(failures: list[Exception], made: int) -> None:
    calls = Calls(failures)
    outcome: Callable[[], Any] = calls.run
    if made <= len(failures):
        with pytest.raises(type(failures[made - 1])):
            outcome()
    else:
        assert outcome() == "answer"
    assert calls.made == made


def test_an_infrastructure_error_is_tried_again_without_a_wait() -> None:
    calls = Calls([broken()])
    calls.run()
    assert calls.waits == [0]


def test_an_infrastructure_error_is_not_tried_again_after_the_deadline() -> None:
    calls = Calls([broken()], budget=-1)
    with pytest.raises(InfrastructureError):
        calls.run()
    assert calls.made == 1


def test_a_wait_that_is_cut_short_ends_in_the_failure_that_it_followed_and_is_no_retry() -> None:
    error = Status(429, retry_after="30")
    calls = Calls([error])
    cutter = threading.Thread(target=lambda: (wait_for(lambda: calls.policy.waiting), calls.policy.cut_short()))
    cutter.start()
    with pytest.raises(Status) as caught:
        calls.policy.call(calls.attempt)
    cutter.join()
    assert caught.value is error
    assert (calls.made, calls.noted) == (1, [])
    assert not calls.policy.waiting


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + 20
    while not condition() and monotonic() < deadline:
        sleep(0.005)
