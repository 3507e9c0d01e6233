"""Trials on the real engine: every execution ends once, on time, and costs no other one anything."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from engine_lab import Hang, Lab, either, eventually, outcome_of, row_of

from pytest_hillclimb.engine.app import Context
from pytest_hillclimb.engine.outcome import Kind, Outcome, Signal
from pytest_hillclimb.errors import AttachmentError, InfrastructureError, UnsafePathError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.grade import Grade
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.model.state import LoopState
from pytest_hillclimb.report.tally import Tally

MakeLab = Callable[..., Lab]

CEILING_S = 0.4
USAGE = {"input_tokens": 10, "output_tokens": 2}
JUDGE = {"judge_model": "j-1", "judge_usage": {"output_tokens": 5}}
ANSWER = {"output": "hi", "model": "m-1", "usage": USAGE}
sync_and_async = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


class Billed(Exception):
    """An exception that tells what was spent before it was raised."""

    def __init__(self, message: str = "failed", **fields: Any) -> None:
        super().__init__(message)
        self.__dict__.update(fields)


class Flaky(InfrastructureError):
    """Passes by itself, after no wait."""

    def __init__(self, **fields: Any) -> None:
        super().__init__("sandbox_lost", True, "the sandbox is gone")
        self.__dict__.update(fields)


def lost(stage: str) -> dict[str, str]:
    """What the history says of a Flaky try."""
    return {"stage": stage, "failure_class": "infrastructure", "code": "sandbox_lost", "error": "the sandbox is gone"}


def answer(case: Case, ctx: Context) -> object:
    return ANSWER


def spent(*outcomes: Outcome) -> Tally:
    tally = Tally()
    for outcome in outcomes:
        tally.add(outcome)
    return tally


def failure(outcome: Outcome) -> dict[str, Any]:
    assert outcome.kind is Kind.FAILED
    return row_of(outcome)


def scored(outcome: Outcome) -> dict[str, Any]:
    assert outcome.kind is Kind.SCORED, f"{outcome.label}: {outcome.row}"
    return row_of(outcome)


# --- what a trial gives -----------------------------------------------------------------------------------------------


@sync_and_async
def test_a_scored_trial_has_its_row_verdict_transcript_and_output(lab: MakeLab, is_async: bool) -> None:
    turns = [{"role": "user", "content": "hi"}]
    app = either(is_async, lambda case, ctx: {**ANSWER, "transcript": turns})
    outcome = lab(app, lambda case, run, ref, ctx: {"pass": run.output == "hi", "ref": ref is None}).outcome()
    row = scored(outcome)
    assert list(row) == ["prompt_id", "rep", "prompt", "model", "usage", "status", "latency_s", "grade", "passed"]
    assert row["grade"] == {"pass": 1, "ref": 1}
    assert (outcome.passed, outcome.transcript, outcome.output) == (True, turns, "hi")
    assert (outcome.key, outcome.file_stem) == (("only", 0), "only_rep0")


@pytest.mark.parametrize(("variant", "expected"), [("baseline", None), ("v2", "frozen only")])
def test_only_later_rounds_are_graded_against_the_reference(lab: MakeLab, variant: str, expected: str | None) -> None:
    seen: list[str | None] = []
    grade = lambda case, run, ref, ctx: seen.append(ref) or 1  # noqa: E731
    scored(lab(answer, grade, variant=variant, reference=lambda safe_id: f"frozen {safe_id}").outcome())
    assert seen == [expected]


def test_a_reference_that_cannot_be_read_fails_the_trial_and_keeps_the_bill(lab: MakeLab) -> None:
    def reference(safe_id: str) -> str | None:
        raise UnsafePathError("ref/only is a link")

    lab_ = lab(answer, variant="v1", reference=reference)
    row = failure(lab_.outcome())
    assert (row["failure_class"], row["error"]) == ("error", "ref/only is a link")
    assert (row["model"], row["usage"]) == ("m-1", USAGE)
    assert lab_.grades == []


def test_latency_is_that_of_the_last_app_attempt_alone(lab: MakeLab) -> None:
    def app(case: Case, ctx: Context) -> object:
        if ctx.attempt == 1:
            time.sleep(0.3)
            raise Flaky
        return ANSWER

    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        time.sleep(0.3)
        return 1

    outcome = lab(app, grade).outcome()
    assert scored(outcome)["latency_s"] < 0.25
    assert outcome.duration >= 0.6


def test_each_of_many_trials_is_paid_once(lab: MakeLab) -> None:
    lab_ = lab(width=8)
    outcomes = lab_.outcomes(*(f"c{n}" for n in range(100)), reps=3)
    assert len(outcomes) == 300
    assert {outcome.kind for outcome in outcomes.values()} == {Kind.SCORED}
    assert sorted(lab_.runs) == sorted(lab_.grades) == sorted(f"c{n}" for n in range(100) for _ in range(3))


# --- the served model -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("served", ["m-1", "m-1-20250101", None, ""])
def test_the_model_that_was_asked_for_is_graded(lab: MakeLab, served: str | None) -> None:
    scored(lab(lambda case, ctx: {**ANSWER, "model": served}, model="m-1").outcome())


def test_another_model_is_not_graded_and_keeps_its_bill(lab: MakeLab) -> None:
    lab_ = lab(lambda case, ctx: {**ANSWER, "model": "m-2"}, model="m-1")
    row = failure(lab_.outcome())
    assert row["failure_class"] == "serving_substitution"
    assert "m-2" in row["error"]
    assert (row["model"], row["usage"], row["retries"]) == ("m-2", USAGE, 0)
    assert (lab_.runs, lab_.grades) == (["only"], [])


# --- unusable results -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "path"),
    [
        ({**ANSWER, "transcript": [{"role": "user"}, {"content": {"score": math.nan}}]}, "transcript[1].content.score"),
        ({**ANSWER, "output": object()}, "output"),
        (Run(output=[math.inf], model="m-1", usage=USAGE), "output[0]"),
        ({**ANSWER, "stop_reason": 5}, "stop_reason"),
        ({**ANSWER, "transcript": "hi"}, "transcript"),
    ],
)
@sync_and_async
def test_a_result_that_cannot_be_stored_is_invalid_output_and_keeps_its_bill(
    lab: MakeLab, is_async: bool, result: object, path: str
) -> None:
    lab_ = lab(either(is_async, lambda case, ctx: result))
    row = failure(lab_.outcome())
    assert row["failure_class"] == "invalid_output"
    assert row["error"].startswith(f"run.{path}: ")
    assert (row["model"], row["usage"]) == ("m-1", USAGE)
    assert (lab_.runs, lab_.grades) == (["only"], [])


@pytest.mark.parametrize("result", [None, "text", 5, [1]])
def test_a_result_that_is_no_run_is_invalid_output(lab: MakeLab, result: object) -> None:
    assert failure(lab(lambda case, ctx: result).outcome())["failure_class"] == "invalid_output"


@pytest.mark.parametrize(
    ("result", "path"),
    [
        (math.nan, "grade"),
        (None, "grade"),
        ({"a": 1, "b": math.inf}, "grade.b"),
        ("0.8", "grade"),
        (Grade(grade={}), "grade"),
        ({"grade": 1, "passed": "yes"}, "passed"),
    ],
)
def test_a_grade_that_cannot_be_stored_is_grader_error_and_keeps_the_bill(
    lab: MakeLab, result: object, path: str
) -> None:
    row = failure(lab(answer, lambda case, run, ref, ctx: result).outcome())
    assert row["failure_class"] == "grader_error"
    assert row["error"].startswith(f"{path}: ")
    assert (row["model"], row["usage"]) == ("m-1", USAGE)


@pytest.mark.parametrize("form", [dict, Grade])
def test_what_the_judge_was_billed_for_an_unusable_grade_is_kept(lab: MakeLab, form: Callable[..., object]) -> None:
    given = form(grade={"a": math.nan}, **JUDGE)
    row = failure(lab(answer, lambda case, run, ref, ctx: given).outcome())
    assert row["failure_class"] == "grader_error"
    assert {key: row[key] for key in ("model", "usage", *JUDGE)} == {"model": "m-1", "usage": USAGE, **JUDGE}


def test_a_coroutine_that_a_plain_grader_forgot_to_await_is_no_grade(
    lab: MakeLab, recwarn: pytest.WarningsRecorder
) -> None:
    async def judge() -> float:
        return 1.0

    row = failure(lab(answer, lambda case, run, ref, ctx: judge()).outcome())
    assert row["failure_class"] == "grader_error"
    assert "await" in row["error"]
    assert not any("never awaited" in str(warning.message) for warning in recwarn)


def test_an_async_grader_is_awaited(lab: MakeLab) -> None:
    async def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        await asyncio.sleep(0)
        return {"pass": 1}

    assert scored(lab(answer, grade).outcome())["grade"] == {"pass": 1}


# --- what is raised ---------------------------------------------------------------------------------------------------

RAISED = [
    (ValueError("x"), "error"),
    (AssertionError("x"), "error"),
    (MemoryError("x"), "error"),
    (RecursionError("x"), "error"),
    (StopIteration("x"), "error"),
    (BaseException("x"), "error"),
    (SystemExit("x"), "app_exit"),
    (KeyboardInterrupt("x"), "error"),
    (asyncio.CancelledError("x"), "error"),
    (GeneratorExit("x"), "error"),
]


@pytest.mark.parametrize(("error", "failure_class"), RAISED, ids=[type(error).__name__ for error, _ in RAISED])
@sync_and_async
def test_whatever_the_app_raises_fails_its_own_trial_alone(
    lab: MakeLab, is_async: bool, error: BaseException, failure_class: str
) -> None:
    def app(case: Case, ctx: Context) -> object:
        if case.id == "bad":
            raise error
        return ANSWER

    outcomes = lab(either(is_async, app), width=2).outcomes("a", "bad", "b", "c")
    row = failure(outcomes.pop("bad"))
    assert row["failure_class"] == failure_class
    assert str(error) in row["error"] or isinstance(error, StopIteration)
    assert (row["retries"], row["judge_retries"]) == (0, 0)
    assert all(scored(outcome) for outcome in outcomes.values())


@pytest.mark.parametrize("error", [error for error, _ in RAISED], ids=[type(error).__name__ for error, _ in RAISED])
@sync_and_async
def test_whatever_the_grader_raises_is_its_error_and_keeps_the_bill(
    lab: MakeLab, is_async: bool, error: BaseException
) -> None:
    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        raise error

    async def async_grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        await asyncio.sleep(0)
        raise error

    row = failure(lab(answer, async_grade if is_async else grade).outcome())
    assert row["failure_class"] == "grader_error"
    assert (row["model"], row["usage"]) == ("m-1", USAGE)


def test_a_cancelled_trial_cancels_no_other_one(lab: MakeLab) -> None:
    async def app(case: Case, ctx: Context) -> object:
        if case.id == "bad":
            asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(0.05)
        return ANSWER

    outcomes = lab(app).outcomes("a", "bad", "b")
    assert failure(outcomes["bad"])["failure_class"] == "error"
    assert scored(outcomes["a"])
    assert scored(outcomes["b"])


def test_an_exit_in_a_task_that_the_app_started_leaves_the_loop_running(lab: MakeLab) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    async def app(case: Case, ctx: Context) -> object:
        if case.id == "bad":
            task = asyncio.create_task(leave())
            await asyncio.wait([task])
            task.result()
        await asyncio.sleep(0.05)
        return ANSWER

    outcomes = lab(app).outcomes("a", "bad", "b")
    assert failure(outcomes["bad"])["failure_class"] == "app_exit"
    assert scored(outcomes["a"])
    assert scored(outcomes["b"])


def test_an_exception_that_cannot_be_spelled_still_fails_its_trial(lab: MakeLab) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

        __repr__ = __str__

    def app(case: Case, ctx: Context) -> object:
        raise Unspeakable

    row = failure(lab(app).outcome())
    assert (row["failure_class"], row["error_type"]) == ("error", "Unspeakable")
    assert "Unspeakable" in row["error"]


def test_the_place_of_a_failure_is_in_the_users_code(lab: MakeLab) -> None:
    def app(case: Case, ctx: Context) -> object:
        raise ValueError("x")

    place = lab(app).outcome().place
    assert place[-1].startswith(__file__)
    assert place[-1].endswith("in app")


def test_what_failed_exceptions_tell_of_their_cost_is_on_the_row(lab: MakeLab) -> None:
    def app(case: Case, ctx: Context) -> object:
        raise Billed(model="m-1", usage=USAGE, failure_class="refused_by_tool")

    row = failure(lab(app).outcome())
    assert (row["failure_class"], row["model"], row["usage"]) == ("refused_by_tool", "m-1", USAGE)


@pytest.mark.parametrize(
    ("run", "raised", "expected"),
    [
        ({}, JUDGE, JUDGE),
        ({"judge_model": "app-j", "judge_usage": {"output_tokens": 1}}, JUDGE, JUDGE),
        (
            {"judge_model": "app-j", "judge_usage": {"output_tokens": 1}},
            {},
            {"judge_model": "app-j", "judge_usage": {"output_tokens": 1}},
        ),
        ({}, {**JUDGE, "model": "not the app's", "usage": {"input_tokens": 999}}, JUDGE),
    ],
)
def test_a_grader_that_raises_tells_the_judges_cost_and_never_the_apps(
    lab: MakeLab, run: dict[str, Any], raised: dict[str, Any], expected: dict[str, Any]
) -> None:
    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        raise Billed(**raised)

    row = failure(lab(lambda case, ctx: {**ANSWER, **run}, grade).outcome())
    assert row["failure_class"] == "grader_error"
    assert {key: row[key] for key in ("model", "usage", *JUDGE)} == {"model": "m-1", "usage": USAGE, **expected}


def test_only_an_account_error_asks_for_the_end_of_the_run(lab: MakeLab) -> None:
    def app(case: Case, ctx: Context) -> object:
        body = {"error": {"type": "authentication_error"}} if case.id == "account" else None
        raise Billed("refused", status=401, body=body)

    outcomes = lab(app).outcomes("account", "bare")
    assert outcomes["account"].stops_run
    assert not outcomes["bare"].stops_run
    assert {failure(outcome)["failure_class"] for outcome in outcomes.values()} == {"authentication"}


class Skip(BaseException):
    pass


@pytest.mark.parametrize("kind", [Kind.SKIPPED, Kind.XFAILED, Kind.EXIT])
@sync_and_async
def test_an_outcome_that_the_app_asks_for_has_no_row(lab: MakeLab, is_async: bool, kind: Kind) -> None:
    def app(case: Case, ctx: Context) -> object:
        raise Skip("no key here")

    signal = lambda error: Signal(kind, str(error), 3) if isinstance(error, Skip) else None  # noqa: E731
    outcome = lab(either(is_async, app), signal=signal).outcome()
    assert (outcome.kind, outcome.reason, outcome.returncode, outcome.row) == (kind, "no key here", 3, None)


@pytest.mark.parametrize("kind", [Kind.SKIPPED, Kind.XFAILED])
def test_an_outcome_that_the_grader_asks_for_keeps_what_was_paid(lab: MakeLab, kind: Kind) -> None:
    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        raise Skip("not today")

    signal = lambda error: Signal(kind, str(error)) if isinstance(error, Skip) else None  # noqa: E731
    outcome = lab(answer, grade, signal=signal).outcome()
    row = row_of(outcome)
    assert (outcome.kind, row["failure_class"], row["model"], row["usage"]) == (kind, "error", "m-1", USAGE)


# --- the deadline -----------------------------------------------------------------------------------------------------


def hung_app(hang: Hang, how: str) -> Callable[[Case, Context], object]:
    """Return an app whose cases hang if they are called so, each in the given way."""
    ways: dict[str, Callable[[], Any]] = {
        "sync": hang.block,
        "async": hang.sleep,
        "thread": hang.block_elsewhere,
        "swallows": hang.shrug_off,
    }

    def app(case: Case, ctx: Context) -> object:
        if case.id.startswith("hung"):
            ways[how]()
        return ANSWER

    async def async_app(case: Case, ctx: Context) -> object:
        await asyncio.sleep(0)
        if case.id.startswith("hung"):
            await ways[how]()
        return ANSWER

    return app if how == "sync" else async_app


@pytest.mark.parametrize(
    ("how", "width", "abandoned"),
    [("sync", 1, 2), ("sync", 3, 2), ("async", 1, 0), ("async", 3, 0), ("thread", 3, 0), ("swallows", 3, 2)],
)
def test_a_hung_app_costs_exactly_its_own_trial(lab: MakeLab, hang: Hang, how: str, abandoned: int, width: int) -> None:
    lab_ = lab(hung_app(hang, how), width=width, timeout=CEILING_S)
    began = time.monotonic()
    outcomes = lab_.outcomes("a", "hung-1", "b", "hung-2", "c")
    took = time.monotonic() - began
    for id_ in ("hung-1", "hung-2"):
        row = failure(outcomes.pop(id_))
        assert (row["failure_class"], row["retries"]) == ("timeout", 0)
        assert "0.4s" in row["error"]
        assert CEILING_S <= row["latency_s"] < CEILING_S + 1
    assert all(scored(outcome) for outcome in outcomes.values())
    assert took < 2 * CEILING_S + 2
    assert lab_.close() < 3
    assert lab_.engine.abandoned == abandoned
    assert sorted(lab_.runs) == ["a", "b", "c", "hung-1", "hung-2"]


@pytest.mark.parametrize(("how", "abandoned"), [("sync", 1), ("async", 0), ("swallows", 1), ("blocks", 1)])
def test_a_hung_grader_costs_exactly_its_own_trial_and_keeps_the_bill(
    lab: MakeLab, hang: Hang, how: str, abandoned: int
) -> None:
    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        if case.id == "hung":
            hang.block()
        return 1

    async def async_grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        await asyncio.sleep(0)
        if case.id == "hung" and how == "blocks":
            hang.block()
        elif case.id == "hung":
            await (hang.sleep() if how == "async" else hang.shrug_off())
        return 1

    lab_ = lab(answer, grade if how == "sync" else async_grade, timeout=CEILING_S, width=1)
    outcomes = lab_.outcomes("a", "hung", "b")
    row = failure(outcomes.pop("hung"))
    assert (row["failure_class"], row["model"], row["usage"]) == ("timeout", "m-1", USAGE)
    assert all(scored(outcome) for outcome in outcomes.values())
    lab_.close(hurried=True)
    assert lab_.engine.abandoned == abandoned
    assert sorted(lab_.runs) == ["a", "b", "hung"]


@sync_and_async
def test_one_deadline_holds_over_app_and_grader(lab: MakeLab, is_async: bool) -> None:
    async def slow(case: Case, ctx: Context) -> object:
        await asyncio.sleep(0.3)
        return ANSWER

    def app(case: Case, ctx: Context) -> object:
        time.sleep(0.3)
        return ANSWER

    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        time.sleep(0.3)
        return 1

    row = failure(lab(slow if is_async else app, grade, timeout=CEILING_S).outcome())
    assert (row["failure_class"], row["usage"]) == ("timeout", USAGE)


def test_a_hung_retry_is_a_timeout_that_counts_it(lab: MakeLab, hang: Hang) -> None:
    def app(case: Case, ctx: Context) -> object:
        if ctx.attempt == 1:
            raise Flaky(usage=USAGE, model="m-1")
        hang.block()
        return ANSWER

    outcome = lab(app, timeout=CEILING_S).outcome()
    row = failure(outcome)
    assert (row["failure_class"], row["retries"]) == ("timeout", 1)
    assert row["retry_usage"] == [{**USAGE, "model": "m-1"}]
    assert spent(outcome).tokens == USAGE


def test_a_retry_that_would_end_past_the_deadline_fails_at_once_as_what_it_was(lab: MakeLab) -> None:
    def app(case: Case, ctx: Context) -> object:
        raise Billed("busy", status=429)

    lab_ = lab(app, timeout=CEILING_S)
    row = failure(lab_.outcome())
    assert (row["failure_class"], row["retries"]) == ("rate_limited", 0)
    assert row["latency_s"] < CEILING_S
    assert lab_.runs == ["only"]


@pytest.mark.parametrize("stage", ["app", "grader"])
@sync_and_async
def test_a_result_that_comes_late_is_dropped(lab: MakeLab, stage: str, is_async: bool) -> None:
    release, returned = threading.Event(), threading.Event()

    def late(value: object) -> object:
        release.wait(20)
        returned.set()
        return value

    async def async_late(value: object) -> object:
        while not release.is_set():
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
        returned.set()
        return value

    def call(value: object) -> Any:
        return async_late(value) if is_async else late(value)

    async def async_grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        return await call(1) if stage == "grader" else 1

    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        return call(1) if stage == "grader" else 1

    lab_ = lab(
        lambda case, ctx: call(ANSWER) if stage == "app" else ANSWER,
        async_grade if is_async else grade,
        timeout=CEILING_S,
    )
    outcome = lab_.outcome()
    release.set()
    assert returned.wait(20)
    time.sleep(0.05)
    lab_.close()
    assert failure(outcome)["failure_class"] == "timeout"
    assert [outcome_of(trial) for trial in lab_.ends] == [outcome]
    assert lab_.grades == ([] if stage == "app" else ["only"])
    assert lab_.engine.abandoned == 0


def test_without_a_ceiling_there_is_no_deadline(lab: MakeLab) -> None:
    left: list[float] = []
    scored(lab(lambda case, ctx: left.append(ctx.remaining()) or ANSWER, timeout=0).outcome())
    assert left == [math.inf]


# --- a blocked event loop ---------------------------------------------------------------------------------------------


BLOCKED_CEILING_S = 0.6


def blocking_app(hang: Hang, started: list[str], after_s: float = 0.02) -> Callable[[Case, Context], object]:
    """Return an async app whose cases take note of their start, and block the loop if they are called so."""

    async def app(case: Case, ctx: Context) -> object:
        started.append(case.id)
        await asyncio.sleep(after_s)
        if case.id.startswith("blocks"):
            hang.block()
        await asyncio.sleep(0.1)
        return ANSWER

    return app


def test_a_coroutine_that_blocks_the_loop_costs_exactly_its_own_trial(lab: MakeLab, hang: Hang) -> None:
    started: list[str] = []
    lab_ = lab(blocking_app(hang, started), timeout=BLOCKED_CEILING_S, width=3)
    outcomes = lab_.outcomes("a", "blocks", "b", "c", "d")
    assert failure(outcomes.pop("blocks"))["failure_class"] == "timeout"
    untold = {"tries_of_unknown_cost": 1}  # of who was lost with the loop
    assert all(scored(outcome).get("meta", untold) == untold for outcome in outcomes.values())
    assert lab_.close() < 3
    assert {id_: started.count(id_) for id_ in "abcd"} == {"a": 2, "b": 2, "c": 1, "d": 1}
    assert started.count("blocks") == 1
    assert lab_.engine.abandoned == 3
    assert len(lab_.warnings) == 1
    assert "blocks rep0" in lab_.warnings[0]


def test_several_coroutines_that_block_cost_exactly_their_own_trials(lab: MakeLab, hang: Hang) -> None:
    started: list[str] = []
    lab_ = lab(blocking_app(hang, started), timeout=BLOCKED_CEILING_S, width=8)
    blocks = [f"blocks-{n}" for n in range(6)]
    outcomes = lab_.outcomes("a", *blocks[:3], "b", *blocks[3:], "c", "d")
    for id_ in blocks:
        assert failure(outcomes.pop(id_))["failure_class"] == "timeout"
    untold = {"tries_of_unknown_cost": 1}  # of who was lost with the loop
    assert all(scored(outcome).get("meta", untold) == untold for outcome in outcomes.values())
    assert all(started.count(id_) <= 2 for id_ in started)
    assert lab_.close() < 3, "each blocked loop is waited for in turn"


def test_a_block_that_begins_shortly_before_their_deadline_costs_others_nothing(lab: MakeLab, hang: Hang) -> None:
    lab_ = lab(blocking_app(hang, [], after_s=BLOCKED_CEILING_S - 0.2), timeout=BLOCKED_CEILING_S)
    outcomes = lab_.outcomes("a", "blocks", "b")
    assert failure(outcomes.pop("blocks"))["failure_class"] == "timeout"
    assert all(scored(outcome) for outcome in outcomes.values())


def test_the_clocks_of_others_stop_while_a_coroutine_blocks_their_loop(lab: MakeLab) -> None:
    async def app(case: Case, ctx: Context) -> object:
        await asyncio.sleep(0.05)
        if case.id == "blocks":
            time.sleep(0.5)
        else:
            await asyncio.sleep(0)
            await asyncio.sleep(0.3)
        return ANSWER

    lab_ = lab(app, timeout=0.6)
    outcomes = lab_.outcomes("a", "blocks", "b")
    assert {outcome.kind for outcome in outcomes.values()} == {Kind.SCORED}
    assert sorted(lab_.runs) == ["a", "b", "blocks"]
    assert lab_.engine.abandoned == 0


def test_a_lost_call_is_not_made_again_once_the_engine_is_stopped(lab: MakeLab, hang: Hang) -> None:
    started: list[str] = []
    lab_ = lab(blocking_app(hang, started), timeout=BLOCKED_CEILING_S, width=2)
    trials = lab_.start("a", "blocks")
    eventually(lambda: len(started) == 2)
    lab_.engine.stop()
    lab_.wait(trials)
    assert started.count("a") == 1


# --- lanes and their order --------------------------------------------------------------------------------------------


class InFlight:
    """Counts how many are inside at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


def test_as_many_blocking_calls_are_in_flight_as_asked_for_and_no_more(lab: MakeLab) -> None:
    inside, all_lanes = InFlight(), threading.Barrier(3)

    def app(case: Case, ctx: Context) -> object:
        with inside:
            all_lanes.wait(20)
            time.sleep(0.01)
        return ANSWER

    outcomes = lab(app, width=3).outcomes(*(f"c{n}" for n in range(12)))
    assert {outcome.kind for outcome in outcomes.values()} == {Kind.SCORED}
    assert inside.most == 3


def test_as_many_coroutines_are_in_flight_as_asked_for_and_no_more(lab: MakeLab) -> None:
    inside, all_lanes = InFlight(), asyncio.Barrier(3)

    async def app(case: Case, ctx: Context) -> object:
        with inside:
            await all_lanes.wait()
            await asyncio.sleep(0.01)
        return ANSWER

    outcomes = lab(app, width=3).outcomes(*(f"c{n}" for n in range(12)))
    assert {outcome.kind for outcome in outcomes.values()} == {Kind.SCORED}
    assert inside.most == 3


def test_coroutines_may_block_in_as_many_threads_as_there_are_trials(lab: MakeLab) -> None:
    together = threading.Barrier(50)

    async def app(case: Case, ctx: Context) -> object:
        await asyncio.to_thread(together.wait, 20)
        return ANSWER

    outcomes = lab(app, width=50).outcomes(*(f"c{n}" for n in range(50)))
    assert {outcome.kind for outcome in outcomes.values()} == {Kind.SCORED}


def test_lanes_lost_to_hung_calls_are_replaced_and_the_width_is_kept(lab: MakeLab, hang: Hang) -> None:
    inside, all_lanes = InFlight(), threading.Barrier(2)

    def app(case: Case, ctx: Context) -> object:
        if case.id.startswith("hung"):
            hang.block()
        with inside:
            all_lanes.wait(20)
        return ANSWER

    outcomes = lab(app, width=2, timeout=0.3).outcomes("hung-1", "hung-2", *(f"c{n}" for n in range(6)))
    assert [outcome.kind for outcome in outcomes.values()] == [Kind.FAILED] * 2 + [Kind.SCORED] * 6
    assert inside.most == 2


def gated(lab: MakeLab, **options: Any) -> tuple[Lab, threading.Event]:
    """Return a lab of width 1 whose first trial, already started, holds the lane until the event is set."""
    gate, inside = threading.Event(), threading.Event()

    def app(case: Case, ctx: Context) -> object:
        if case.id == "first":
            inside.set()
            gate.wait(20)
        return ANSWER

    made = lab(app, width=1, **options)
    made.start("first")
    assert inside.wait(20)
    return made, gate


def test_trials_start_in_the_order_in_which_they_were_added(lab: MakeLab) -> None:
    lab_, gate = gated(lab)
    trials = lab_.start("c", "a") + lab_.start("b")
    gate.set()
    lab_.wait(trials)
    assert lab_.runs == ["first", "c", "a", "b"]


def test_a_trial_that_is_needed_starts_before_all_that_is_queued(lab: MakeLab) -> None:
    lab_, gate = gated(lab)
    trials = lab_.start("a", "b", "c")
    [fresh] = lab_.trials("fresh")
    lab_.engine.need(trials[2])
    lab_.engine.need(fresh)
    gate.set()
    lab_.wait([*trials, fresh])
    assert lab_.runs == ["first", "c", "fresh", "a", "b"]


def test_a_trial_that_is_needed_twice_before_it_starts_runs_once(lab: MakeLab) -> None:
    lab_, gate = gated(lab)
    [trial] = lab_.start("a")
    lab_.engine.need(trial)
    lab_.engine.need(trial)
    gate.set()
    [last] = lab_.start("last")
    lab_.wait([trial, last])
    assert lab_.runs == ["first", "a", "last"]


def test_a_trial_that_is_needed_just_as_it_starts_runs_once(lab: MakeLab) -> None:
    lab_ = lab(width=2)
    trials = []
    for n in range(100):
        trials += (added := lab_.start(f"a{n}", f"b{n}"))
        lab_.engine.need(added[0])
    lab_.wait(trials)
    lab_.engine.need(trials[0])
    trials += (last := lab_.start("last"))
    lab_.wait(last)
    assert sorted(lab_.runs) == sorted(trial.execution.case.id for trial in trials)


def test_while_starting_is_held_only_what_is_needed_starts(lab: MakeLab) -> None:
    lab_, gate = gated(lab)
    trials = lab_.start("a", "b")
    lab_.engine.hold()
    gate.set()
    lab_.engine.need(trials[1])
    lab_.wait([trials[1]])
    assert lab_.engine.wait_idle(20)
    assert lab_.runs == ["first", "b"]
    assert trials[0].outcome is None


def test_no_queued_trial_starts_from_the_position_on_that_is_not_allowed_yet(lab: MakeLab) -> None:
    lab_, gate = gated(lab)
    lab_.engine.allow(3)
    trials = lab_.start("a", "b", "c", "d")
    gate.set()
    lab_.wait(trials[:2])
    assert lab_.engine.wait_idle(20)
    time.sleep(0.05)
    assert lab_.runs == ["first", "a", "b"]
    lab_.engine.allow(4)
    lab_.wait(trials[:3])
    lab_.engine.need(trials[3])
    lab_.wait(trials)
    assert lab_.runs == ["first", "a", "b", "c", "d"]


def test_once_stopped_nothing_starts_but_what_is_in_flight_is_scored(lab: MakeLab) -> None:
    lab_, gate = gated(lab)
    trials = lab_.start("a", "b")
    lab_.engine.stop()
    lab_.engine.need(trials[0])
    gate.set()
    assert lab_.engine.wait_idle(20)
    time.sleep(0.05)
    lab_.close()
    assert lab_.runs == ["first"]
    assert [scored(outcome_of(trial))["prompt_id"] for trial in lab_.ends] == ["first"]


def test_waiting_for_quiet_gives_up_when_told(lab: MakeLab) -> None:
    lab_, gate = gated(lab)
    assert not lab_.engine.wait_idle(0.02)
    gate.set()
    assert lab_.engine.wait_idle(20)


def test_closing_ends_what_is_in_flight_and_leaves_it_behind(lab: MakeLab, hang: Hang) -> None:
    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        hang.block()
        return 1

    def app(case: Case, ctx: Context) -> object:
        if case.id == "in-app":
            hang.block()
        return ANSWER

    lab_ = lab(app, grade, width=2)
    trials = lab_.start("in-app", "in-grader")
    eventually(lambda: lab_.grades == ["in-grader"] and len(lab_.runs) == 2)
    assert lab_.close(hurried=True) < 1
    assert sorted(trial.execution.case.id for trial in lab_.ends) == ["in-app", "in-grader"]
    assert trials[0].outcome is None
    row = failure(outcome_of(trials[1]))
    assert (row["failure_class"], row["model"], row["usage"]) == ("error", "m-1", USAGE)
    assert lab_.engine.abandoned == 2


@sync_and_async
def test_closing_in_a_hurry_right_after_a_trial_never_fails(lab: MakeLab, is_async: bool) -> None:
    for _ in range(100):
        lab_ = lab(either(is_async, answer))
        scored(lab_.outcome())
        lab_.close(hurried=True)


# --- retries ----------------------------------------------------------------------------------------------------------


@sync_and_async
def test_retries_of_app_and_judge_are_counted_apart_and_their_spend_is_kept(lab: MakeLab, is_async: bool) -> None:
    def app(case: Case, ctx: Context) -> object:
        if ctx.attempt == 1:
            raise Flaky(usage={"input_tokens": 7}, model="m-1")
        return ANSWER

    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        if ctx.attempt == 1:
            raise Flaky(judge_usage={"output_tokens": 3}, judge_model="j-1", usage={"input_tokens": 999})
        return {"grade": 1, **JUDGE}

    lab_ = lab(either(is_async, app), grade)
    outcome = lab_.outcome()
    assert scored(outcome)["meta"] == {
        "retries": 1,
        "judge_retries": 1,
        "retry_usage": [{"input_tokens": 7, "model": "m-1"}, {"output_tokens": 3, "judge_model": "j-1"}],
        "attempts": [lost("app"), lost("judge")],
    }
    assert (len(lab_.runs), len(lab_.grades)) == (2, 2)
    assert spent(outcome).tokens == {"input_tokens": 17, "output_tokens": 2}
    assert spent(outcome).judge_tokens == {"output_tokens": 8}


def test_without_retries_the_row_mentions_none(lab: MakeLab) -> None:
    assert "meta" not in scored(lab(answer).outcome())


def test_spend_of_a_judge_that_does_not_name_its_model_is_the_judges(lab: MakeLab) -> None:
    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        if ctx.attempt == 1:
            raise Flaky(judge_usage={"output_tokens": 3})
        return 1

    tally = spent(lab(answer, grade).outcome())
    assert (tally.tokens, tally.judge_tokens) == (USAGE, {"output_tokens": 3})


def test_the_spend_of_every_failed_try_is_on_the_errors_row_once(lab: MakeLab) -> None:
    def app(case: Case, ctx: Context) -> object:
        raise Flaky(usage={"input_tokens": ctx.attempt}, model="m-1")

    outcome = lab(app).outcome()
    row = failure(outcome)
    assert (row["failure_class"], row["code"], row["retries"]) == ("infrastructure", "sandbox_lost", 1)
    assert (row["usage"], row["retry_usage"]) == ({"input_tokens": 2}, [{"input_tokens": 1, "model": "m-1"}])
    assert spent(outcome).tokens == {"input_tokens": 3}


@pytest.mark.parametrize(("retryable", "calls"), [(True, 2), (False, 1)])
def test_an_infrastructure_error_is_tried_again_once_at_most(lab: MakeLab, retryable: bool, calls: int) -> None:
    def app(case: Case, ctx: Context) -> object:
        raise InfrastructureError("no_gpu", retryable, "none is free")

    lab_ = lab(app)
    row = failure(lab_.outcome())
    assert (row["failure_class"], row["code"], row["error"]) == ("infrastructure", "no_gpu", "none is free")
    assert (len(lab_.runs), row["retries"]) == (calls, calls - 1)


def test_a_provider_error_is_tried_again_after_a_wait(lab: MakeLab) -> None:
    def app(case: Case, ctx: Context) -> object:
        if ctx.attempt == 1:
            raise Billed("Overloaded", response=SimpleNamespace(status_code=529, headers={}))
        return ANSWER

    outcome = lab(app).outcome()
    assert scored(outcome)["meta"] == {"retries": 1}
    assert outcome.duration >= 0.5


@pytest.mark.parametrize("by", ["stop", "close"])
def test_a_wait_for_another_try_is_cut_short_and_its_spend_counted_once(lab: MakeLab, by: str) -> None:
    def app(case: Case, ctx: Context) -> object:
        headers = {"retry-after": "15"}
        raise Billed("busy", response=SimpleNamespace(status=429, headers=headers), usage=USAGE, model="m-1")

    lab_ = lab(app)
    [trial] = lab_.start("only")
    eventually(lambda: trial.pausing)
    began = time.monotonic()
    if by == "stop":
        lab_.engine.stop()
        lab_.wait([trial])
    else:
        lab_.close()
    assert time.monotonic() - began < 5
    outcome = outcome_of(trial)
    assert lab_.runs == ["only"]
    assert spent(outcome).tokens == USAGE
    assert failure(outcome)["retries"] == 0
    if by == "stop":
        assert failure(outcome)["failure_class"] == "rate_limited"


@pytest.mark.parametrize("stage", ["app", "grader"])
@sync_and_async
def test_another_try_that_is_in_flight_when_the_engine_stops_is_scored(
    lab: MakeLab, is_async: bool, stage: str
) -> None:
    second, go_on = threading.Event(), threading.Event()

    def attempt(ctx: Context, value: object) -> object:
        if ctx.attempt == 1:
            raise Flaky
        second.set()
        return value

    async def async_call(ctx: Context, value: object) -> object:
        attempt(ctx, value)
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        return value

    def call(ctx: Context, value: object) -> object:
        attempt(ctx, value)
        go_on.wait(20)
        return value

    async def async_grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        return await async_call(ctx, 1)

    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        return call(ctx, 1)

    chosen = async_call if is_async else call
    if stage == "app":
        lab_ = lab(lambda case, ctx: chosen(ctx, ANSWER))
    else:
        lab_ = lab(answer, async_grade if is_async else grade)
    [trial] = lab_.start("only")
    assert second.wait(20)
    lab_.engine.stop()
    go_on.set()
    lab_.wait([trial])
    counts = {"retries": 1, "tries_of_unknown_cost": 1} if stage == "app" else {"judge_retries": 1}
    assert scored(outcome_of(trial))["meta"] == {**counts, "attempts": [lost("app" if stage == "app" else "judge")]}


# --- further numbers --------------------------------------------------------------------------------------------------


def test_perf_numbers_are_on_the_row(lab: MakeLab) -> None:
    perf = lambda case, run: [{"cost_usd": 0.5, "chars": len(run.output)}, {"chars": 9}]  # noqa: E731
    row = scored(lab(answer, perf=perf).outcome())
    assert (row["cost_usd"], row["chars"]) == (0.5, 9)


def raising(error: BaseException) -> Callable[[Case, Run], list[object]]:
    def perf(case: Case, run: Run) -> list[object]:
        raise error

    return perf


@pytest.mark.parametrize(
    ("perf", "says"),
    [
        (raising(ValueError("no price")), "no price"),
        (raising(SystemExit("no price")), "no price"),
        (raising(BaseException("no price")), "no price"),
        (lambda case, run: [{"cost": math.nan}], "perf.cost"),
        (lambda case, run: [{"cost": object()}], "perf.cost"),
        (lambda case, run: [5], "expected a mapping"),
        (lambda case, run: [None], "expected a mapping"),
        (lambda case, run: 5, "int"),
    ],
    ids=["raises", "exits", "base-exception", "nan", "object", "number", "none", "no-list"],
)
def test_perf_numbers_that_fail_cost_no_paid_grade(
    lab: MakeLab, perf: Callable[[Case, Run], list[object]], says: str
) -> None:
    row = scored(lab(answer, perf=perf).outcome())
    assert row["grade"] == {"score": 1}
    assert says in row["meta"]["perf_error"]


# --- ctx --------------------------------------------------------------------------------------------------------------


def test_ctx_tells_the_facts_of_the_run(lab: MakeLab) -> None:
    seen: list[Context] = []
    lab_ = lab(lambda case, ctx: seen.append(ctx) or ANSWER, variant="v3", model="m-1", timeout=5.0)
    lab_.outcomes("a", "b", reps=2)
    assert sorted(ctx.rep for ctx in seen) == [0, 0, 1, 1]
    for ctx in seen:
        assert (ctx.variant, ctx.model, ctx.attempt, ctx.candidate, ctx.fault) == ("v3", "m-1", 1, None, None)
        assert ctx.flow.name == "flow"
        assert ctx.settings.timeout == 5.0


def test_ctx_seed_depends_on_case_and_rep_alone(lab: MakeLab) -> None:
    def seeds(**options: Any) -> list[int]:
        seen: list[tuple[str, int, int]] = []

        def app(case: Case, ctx: Context) -> object:
            seen.append((case.id, ctx.rep, ctx.seed))
            return ANSWER

        lab(app, **options).outcomes("b", "a", reps=2)
        return [seed for _, _, seed in sorted(seen)]

    first = seeds()
    assert first == seeds(variant="v1", width=1, model="m-1")
    assert len(set(first)) == 4
    assert all(0 <= seed < 2**32 for seed in first)
    assert first[0] == 2968051341


def test_ctx_counts_attempts_of_each_stage_and_the_time_that_is_left(lab: MakeLab) -> None:
    seen: list[tuple[str, int, float]] = []

    def note(stage: str, ctx: Context, value: object) -> object:
        seen.append((stage, ctx.attempt, ctx.remaining()))
        time.sleep(0.02)
        if ctx.attempt == 1:
            raise Flaky
        return value

    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        return note("grade", ctx, 1)

    scored(lab(lambda case, ctx: note("app", ctx, ANSWER), grade, timeout=5.0).outcome())
    assert [(stage, attempt) for stage, attempt, _ in seen] == [("app", 1), ("app", 2), ("grade", 1), ("grade", 2)]
    left = [remaining for _, _, remaining in seen]
    assert left == sorted(left, reverse=True)
    assert 0 < left[-1] < left[0] <= 5.0


def test_ctx_has_no_time_left_after_the_deadline(lab: MakeLab, hang: Hang) -> None:
    contexts: list[Context] = []

    def app(case: Case, ctx: Context) -> object:
        contexts.append(ctx)
        hang.block()
        return ANSWER

    failure(lab(app, timeout=0.3).outcome())
    assert contexts[0].remaining() == 0


def test_ctx_state_is_read_only(lab: MakeLab) -> None:
    state = LoopState.parse({"round": 3, "train_ids": ["a"]}).raw

    def app(case: Case, ctx: Context) -> object:
        assert ctx.state["round"] == 3
        ctx.state["round"] = 4  # type: ignore[index]
        return ANSWER

    assert failure(lab(app, state=state).outcome())["error_type"] == "TypeError"
    assert state["round"] == 3


def test_every_attempt_has_a_fresh_workspace_that_is_gone_after_the_trial(lab: MakeLab, temporary: Any) -> None:
    found: list[Any] = []

    def use(ctx: Context) -> None:
        assert ctx.workspace == ctx.workspace
        assert list(ctx.workspace.iterdir()) == []
        (ctx.workspace / "mine").mkdir()
        (ctx.workspace / "mine" / "notes.txt").write_text("x")
        found.append(ctx.workspace)
        if ctx.attempt == 1:
            raise Flaky

    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        use(ctx)
        return 1

    outcomes = lab(lambda case, ctx: use(ctx) or ANSWER, grade).outcomes("a", "b")
    assert all(scored(outcome) for outcome in outcomes.values())
    assert len(set(found)) == 8
    assert {path.parent for path in found} == {temporary}
    eventually(lambda: not list(temporary.iterdir()))


@pytest.mark.parametrize("how", ["sync", "swallows", "first used late"])
def test_the_workspace_of_a_hung_trial_is_gone_after_the_run(
    lab: MakeLab, hang: Hang, temporary: Any, how: str
) -> None:
    used = threading.Event()

    def use(ctx: Context) -> None:
        (ctx.workspace / "x").write_text("x")
        used.set()

    def app(case: Case, ctx: Context) -> object:
        use(ctx)
        hang.block()
        return ANSWER

    async def async_app(case: Case, ctx: Context) -> object:
        if how == "swallows":
            use(ctx)
            await hang.shrug_off()
        try:
            await hang.sleep()
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)
            use(ctx)
        return ANSWER

    lab_ = lab(app if how == "sync" else async_app, timeout=0.3)
    failure(lab_.outcome())
    assert used.wait(20)
    lab_.close(hurried=True)
    eventually(lambda: not list(temporary.iterdir()), 2.0)


def test_a_trial_that_needs_no_workspace_makes_none(lab: MakeLab, temporary: Any) -> None:
    made: list[object] = []
    scored(lab(lambda case, ctx: made.extend(temporary.iterdir()) or ANSWER).outcome())
    assert made == []


def test_artifacts_of_the_last_attempt_of_each_stage_travel_with_the_outcome(lab: MakeLab) -> None:
    def app(case: Case, ctx: Context) -> object:
        ctx.attach("first-only.txt", "x") if ctx.attempt == 1 else None
        shot = ctx.attach("shot.png", bytes([ctx.attempt]), kind="image", alt="the page")
        if ctx.attempt == 1:
            raise Flaky
        return {**ANSWER, "transcript": [{"role": "assistant", "attachments": [shot]}]}

    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        ctx.attach("verdict.txt", "caf\u00e9")
        return 1

    outcome = lab(app, grade, variant="v2").outcome()
    scored(outcome)
    assert dict(outcome.attachments) == {"shot.png": b"\x02", "verdict.txt": "caf\u00e9".encode()}
    assert outcome.transcript == [
        {
            "role": "assistant",
            "attachments": [{"kind": "image", "ref": "v2/out/only_rep0/shot.png", "alt": "the page"}],
        }
    ]


@sync_and_async
def test_artifacts_of_a_failed_trial_are_kept_too(lab: MakeLab, is_async: bool) -> None:
    def app(case: Case, ctx: Context) -> object:
        ctx.attach("log.txt", "what happened")
        raise ValueError("x")

    outcome = lab(either(is_async, app)).outcome()
    assert dict(outcome.attachments) == {"log.txt": b"what happened"}


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("a.txt", "a.txt"),
        ("A-b_c.9", "A-b_c.9"),
        ("../../etc/passwd", ".._.._etc_passwd-"),
        ("a/b.txt", "a_b.txt-"),
        ("shot 1.png", "shot_1.png-"),
        ("x" * 300, "x" * 120 + "-"),
    ],
)
def test_names_of_artifacts_are_made_path_safe(lab: MakeLab, name: str, stored: str) -> None:
    refs: list[str] = []
    outcome = lab(lambda case, ctx: refs.append(ctx.attach(name, "x").ref) or ANSWER).outcome()
    [kept] = outcome.attachments
    assert kept.startswith(stored)
    assert "/" not in kept
    assert refs == [f"baseline/out/only_rep0/{kept}"]


def refused_attachment(lab: MakeLab, *calls: tuple[str, Any]) -> str:
    """Return what the last of some calls of attach was refused for; those before it must pass."""
    caught: list[str] = []

    def app(case: Case, ctx: Context) -> object:
        for name, data in calls[:-1]:
            ctx.attach(name, data)
        with pytest.raises(AttachmentError) as refusal:
            ctx.attach(*calls[-1])
        caught.append(str(refusal.value))
        return ANSWER

    scored(lab(app).outcome())
    return caught[0]


@pytest.mark.parametrize("name", ["", ".", "..", "..."])
def test_an_artifact_needs_a_name(lab: MakeLab, name: str) -> None:
    assert "expected a file name" in refused_attachment(lab, (name, "x"))


@pytest.mark.parametrize("data", [None, 5, ["x"], {"a": 1}])
def test_an_artifact_is_bytes_or_text(lab: MakeLab, data: object) -> None:
    assert f"got {type(data).__name__}" in refused_attachment(lab, ("a", data))


MIB = bytes(1024 * 1024)


def test_artifacts_are_capped_in_all(lab: MakeLab) -> None:
    assert "16777216 bytes" in refused_attachment(lab, ("a", MIB * 10), ("a", MIB * 10), ("b", MIB * 6), ("c", "x"))


def test_a_name_holds_one_artifact(lab: MakeLab) -> None:
    assert "other content under that name" in refused_attachment(lab, ("a", "x"), ("a", "x"), ("a", "y"))


def test_the_cap_of_artifacts_holds_over_app_and_grader(lab: MakeLab) -> None:
    def grade(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
        ctx.attach("b", MIB * 10)
        return 1

    outcome = lab(lambda case, ctx: ctx.attach("a", MIB * 10) and ANSWER, grade).outcome()
    assert sum(len(data) for data in outcome.attachments.values()) <= 16 * len(MIB)
