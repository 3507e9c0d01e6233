"""Judges in real trials: what rows tell of them, and what is kept when there is no verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_lab import async_client
from engine_lab import PATIENCE_S, Lab, row_of
from judge_lab import JUDGE, USAGE, claims, fenced, preference, verdict
from messages_server import MessagesServer, Play, Request, error, message

from pytest_hillclimb.claude import judges
from pytest_hillclimb.engine.outcome import Kind
from pytest_hillclimb.model.settings import Settings

MakeLab = Callable[..., Lab]
APP = "claude-haiku-4-5"
APP_USAGE = {"input_tokens": 5, "output_tokens": 1}
DOUBLE = {"input_tokens": 200, "output_tokens": 40, "cache_read_input_tokens": 14}


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[MakeLab]:
    """Make engines with an app that needs no server and has an answer of the baseline."""
    labs: list[Lab] = []

    def make(grade_case: Any, *, reference: str | None = "the old answer", **options: Any) -> Lab:
        settings = {"model": APP, "variant": "v1", "timeout": PATIENCE_S, **options}
        labs.append(
            Lab(
                lambda case, ctx: {"output": "the new answer", "model": APP, "usage": APP_USAGE},
                grade_case,
                width=1,
                settings=Settings(flow="flow", flow_base=tmp_path, **settings),
                perf=lambda case, run: [],
                reference=lambda safe_id: reference,
                signal=lambda error: None,
                state={},
            )
        )
        return labs[-1]

    yield make
    for lab in labs:
        lab.close(hurried=True)


def rubric(server: MessagesServer, **options: Any) -> Any:
    async def grade_case(case: Any, run: Any, ref: Any, ctx: Any) -> Any:
        settings = {"model": JUDGE, "client": async_client(server), **options}
        return await judges.rubric(ctx, case, run, ["is new", "is good"], **settings)

    return grade_case


def pairwise(server: MessagesServer, **options: Any) -> Any:
    async def grade_case(case: Any, run: Any, ref: Any, ctx: Any) -> Any:
        settings = {"model": JUDGE, "client": async_client(server), "criteria": "Prefer the newer.", **options}
        return await judges.pairwise(ctx, case, run, ref, **settings)

    return grade_case


def prefers_the_new_one(request: Request) -> Play:
    return preference("a" if fenced(request, "answer_a") == "the new answer" else "b")


def test_a_row_tells_the_grade_its_reasons_and_what_the_judge_was_billed(
    judged: MakeLab, messages_server: MessagesServer
) -> None:
    messages_server.play(claims(True, False))
    row = row_of(judged(rubric(messages_server, score="all")).outcome())
    assert (row["grade"], row["passed"]) == ({"rubric": 0}, False)
    assert row["explanation"]["rubric"].startswith("1 of 2 claims hold:\n")
    assert (row["judge_model"], row["judge_usage"]) == (JUDGE, USAGE)
    assert (row["model"], row["usage"]) == (APP, APP_USAGE)


def test_a_comparison_is_with_the_frozen_answer(judged: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.script = prefers_the_new_one
    row = row_of(judged(pairwise(messages_server, both_orders=True)).outcome())
    assert row["grade"] == {"win": 1}
    assert set(row["explanation"]) == {"win"}
    assert (row["judge_model"], row["judge_usage"]) == (JUDGE, DOUBLE)
    assert "passed" not in row


def test_the_baseline_is_neutral_and_bills_no_judge(judged: MakeLab, messages_server: MessagesServer) -> None:
    row = row_of(judged(pairwise(messages_server), variant="baseline").outcome())
    assert row["grade"] == {"win": 0.5}
    assert not {"judge_model", "judge_usage"} & set(row)
    assert messages_server.requests == []


def test_both_kinds_make_one_row(judged: MakeLab, messages_server: MessagesServer) -> None:
    async def grade_case(*given: Any) -> Any:
        return judges.combined(
            await rubric(messages_server, score="all")(*given),
            await pairwise(messages_server)(*given),
        )

    messages_server.script = lambda r: claims(True, True) if r.number == 0 else prefers_the_new_one(r)
    row = row_of(judged(grade_case).outcome())
    assert (row["grade"], row["passed"]) == ({"rubric": 1, "win": 1}, True)
    assert set(row["explanation"]) == {"rubric", "win"}
    assert (row["judge_model"], row["judge_usage"]) == (JUDGE, DOUBLE)


def test_an_unreadable_verdict_is_an_errors_row_with_its_cost_and_no_second_try(
    judged: MakeLab, messages_server: MessagesServer
) -> None:
    messages_server.play(verdict("The answer on the rate limit is overloaded; credit balance is too low."))
    outcome = judged(rubric(messages_server)).outcome()
    row = row_of(outcome)
    assert (outcome.kind, row["failure_class"], row["judge_retries"]) == (Kind.FAILED, "judge_error", 0)
    assert (row["judge_model"], row["judge_usage"]) == (JUDGE, USAGE)
    assert (row["model"], row["usage"]) == (APP, APP_USAGE)
    assert 'it said "The answer on the rate limit is overloaded; credit balance is too low."' in row["error"]
    assert row["error_type"] == "JudgeError"
    assert len(messages_server.requests) == 1
    assert not outcome.stops_run


def test_what_a_first_judge_cost_is_kept_when_a_second_one_cannot_be_read(
    judged: MakeLab, messages_server: MessagesServer
) -> None:
    async def grade_case(*given: Any) -> Any:
        return judges.combined(await rubric(messages_server)(*given), await pairwise(messages_server)(*given))

    messages_server.play(claims(True, True), verdict(""))
    row = row_of(judged(grade_case).outcome())
    assert (row["failure_class"], row["judge_usage"]) == ("judge_error", DOUBLE)


@pytest.mark.usefixtures("quick_retries")
def test_errors_of_the_api_are_retried_by_the_trial_and_counted_there(
    judged: MakeLab, messages_server: MessagesServer
) -> None:
    messages_server.play(error(529, "overloaded_error"), error(500, "api_error"), claims(True, True))
    row = row_of(judged(rubric(messages_server)).outcome())
    assert (row["grade"], row["meta"]["judge_retries"], row["judge_usage"]) == ({"rubric": 1}, 2, USAGE)
    assert len(messages_server.requests) == 3


@pytest.mark.usefixtures("quick_retries")
def test_an_order_that_was_judged_before_an_error_of_the_api_stays_on_the_account(
    judged: MakeLab, messages_server: MessagesServer
) -> None:
    def judge(request: Request) -> Play:
        return error(529, "overloaded_error") if request.number == 1 else prefers_the_new_one(request)

    messages_server.script = judge
    row = row_of(judged(pairwise(messages_server, both_orders=True)).outcome())
    assert (row["grade"], row["judge_usage"]) == ({"win": 1}, DOUBLE)
    assert row["meta"]["retry_usage"] == [{**USAGE, "judge_model": JUDGE}]


def test_a_judge_that_breaks_off_at_the_ceiling_has_its_cost_told(
    judged: MakeLab, messages_server: MessagesServer
) -> None:
    messages_server.play(Play(message("{", model=JUDGE, usage=USAGE), keep=2, then="pings"))
    row = row_of(judged(rubric(messages_server), timeout=0.5).outcome())
    assert (row["failure_class"], row["judge_model"]) == ("timeout", JUDGE)
    assert row["judge_usage"]["input_tokens"] == USAGE["input_tokens"]
    assert messages_server.requests[0].gone.wait(PATIENCE_S)


def test_a_model_that_would_judge_itself_is_refused_before_a_call(
    judged: MakeLab, messages_server: MessagesServer
) -> None:
    row = row_of(judged(rubric(messages_server, model="claude-haiku-4-5-20251001")).outcome())
    assert (row["failure_class"], row["model"]) == ("judge_error", APP)
    assert "judge_usage" not in row
    assert messages_server.requests == []


def test_a_later_round_without_a_reference_is_not_measured(judged: MakeLab, messages_server: MessagesServer) -> None:
    row = row_of(judged(pairwise(messages_server), reference=None).outcome())
    assert row["failure_class"] == "grader_error"
    assert "run the case in the baseline first" in row["error"]


def test_a_judge_with_a_wrong_key_stops_the_run(judged: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(error(401, "authentication_error", "invalid x-api-key"))
    outcome = judged(rubric(messages_server)).outcome()
    assert (outcome.failure_class, outcome.stops_run) == ("authentication", True)


def test_a_substituted_judge_gives_no_score(judged: MakeLab, messages_server: MessagesServer) -> None:
    messages_server.play(claims(True, True, model="claude-opus-4-2"))
    row = row_of(judged(rubric(messages_server)).outcome())
    assert (row["failure_class"], row["judge_model"]) == ("serving_substitution", "claude-opus-4-2")
    assert row["judge_usage"] == USAGE
