"""When a call is made again: five tries for what passes by itself, with waits that respect server and deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from time import monotonic
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception

from pytest_hillclimb.engine.classify import classify
from pytest_hillclimb.errors import InfrastructureError

T = TypeVar("T")

MAX_TRIES = 5
_MAX_WAIT_S = 60.0
_random = Random()  # of our own: an app that seeds the global one must not make all trials wait in step


class RetryPolicy:
    """The retries of one stage (app or judge) of one trial.

    :param deadline: returns the trial's deadline on the monotonic clock; no wait ends after it
    :param stopping: returns whether nothing more may be started
    :param tries: how often the call is made at most
    :param on_late: told when no other try is made as it would pass the deadline
    :param affords: returns whether another try can be paid for, after the one that ended in this error
    :param on_asked: told of the seconds that a server asks to wait
    :param on_retry: told of each failed try once its wait is over, which is when it counts as retried
    """

    def __init__(
        self,
        *,
        deadline: Callable[[], float],
        stopping: Callable[[], bool],
        on_retry: Callable[[BaseException], None],
        on_asked: Callable[[float], None] = lambda _: None,
        on_late: Callable[[], None] = lambda: None,
        affords: Callable[[BaseException], bool] = lambda _: True,
        tries: int = MAX_TRIES,
    ) -> None:
        self.failed_try: BaseException | None = None
        """The error of the try whose wait goes on or was cut short."""
        self._deadline = deadline
        self._stopping = stopping
        self._on_retry = on_retry
        self._on_asked = on_asked
        self._on_late = on_late
        self._affords = affords
        self._tries = tries
        self._infrastructure_failures = 0
        self._wake = threading.Event()

    @property
    def waiting(self) -> bool:
        """Whether a wait for another try goes on."""
        return self.failed_try is not None and not self._wake.is_set()

    def cut_short(self) -> None:
        """End the wait for another try, and make none."""
        self._wake.set()

    def call(self, attempt: Callable[[], T]) -> T:
        """Return the result of *attempt*, made again while that makes sense; raise its last exception otherwise."""

        try:
            return attempt()
        except BaseException as error:
            if not classify(error).transient:
                raise
            first = [error]

        def once() -> T:
            if first:
                raise first.pop()  # the machinery of retries costs more than most tries, so it only sees failures
            if self.failed_try is not None:
                raise self.failed_try
            return attempt()

        retrying = Retrying(
            retry=retry_if_exception(lambda error: classify(error).transient),
            wait=self._wait,
            stop=self._stop,
            sleep=self._sleep,
            before_sleep=self._before_sleep,
            reraise=True,
        )
        return retrying(once)

    def _wait(self, state: RetryCallState) -> float:
        error = _error(state)
        if isinstance(error, InfrastructureError):
            return 0.0
        backoff = min(_MAX_WAIT_S, 2.0 ** (state.attempt_number - 1)) * _random.uniform(0.5, 1.5)
        asked = classify(error).retry_after
        if asked:
            self._on_asked(asked)
        return max(backoff, asked)

    def _stop(self, state: RetryCallState) -> bool:
        error = _error(state)
        if isinstance(error, InfrastructureError):
            self._infrastructure_failures += 1
            if self._infrastructure_failures > 1:
                return True
        if state.attempt_number >= self._tries or self._wake.is_set() or self._stopping():
            return True
        if monotonic() + state.upcoming_sleep >= self._deadline():
            self._on_late()
            return True
        return not self._affords(error)

    def _before_sleep(self, state: RetryCallState) -> None:
        self.failed_try = _error(state)
        if self._stopping():  # which may have come too late to be told to those that wait
            self._wake.set()

    def _sleep(self, seconds: float) -> None:
        if not self._wake.wait(min(seconds, threading.TIMEOUT_MAX)) and self.failed_try is not None:
            error, self.failed_try = self.failed_try, None
            self._on_retry(error)


def _error(state: RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome is not None else None
    if error is None:
        raise RuntimeError("retry asked about a call that did not fail")
    return error
