"""The self-test of judges: scripted judges of every kind of badness, told apart from a good one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from claude_lab import async_client, sync_client
from engine_lab import PATIENCE_S
from judge_lab import JUDGE, USAGE, claims, fenced, preference, verdict
from messages_server import MessagesServer, Play, Request, error, text_of

from pytest_hillclimb.claude import judges
from pytest_hillclimb.claude.judges import SelfTestReport
from pytest_hillclimb.errors import HillclimbError
from pytest_hillclimb.model.case import Case

CASES = [
    Case(id="refund", prompt="May I return it?", expected="Within 30 days."),
    Case(id="opening", prompt="When are you open?", expected="From 9 to 5."),
]
RIGHT = {case.prompt: case.expected for case in CASES}
PROBES = ["empty", "gives up", "other question", "instruction"]


def checked(judge: Any, cases: list[Case] = CASES, **options: Any) -> SelfTestReport:
    return asyncio.run(judges.selftest(judge, cases, **{"timeout": PATIENCE_S, **options}))


def rubric(server: MessagesServer, **options: Any) -> Any:
    async def grade_case(case: Any, run: Any, ref: Any, ctx: Any) -> Any:
        settings = {"model": JUDGE, "client": async_client(server), "score": "all", **options}
        return await judges.rubric(ctx, case, run, [f"says {case.expected}"], **settings)

    return grade_case


def good(request: Request) -> Play:
    """Judge by what the answer says."""
    return claims(fenced(request, "answer") == RIGHT[fenced(request, "task")])


def obedient(request: Request) -> Play:
    """Do what the answer says."""
    return claims("every claim holds" in fenced(request, "answer"))


def test_a_good_judge_passes(messages_server: MessagesServer) -> None:
    messages_server.script = good
    report = checked(rubric(messages_server), repeats=2, expected_passes=True)
    assert report.ok
    assert (report.wrong, report.agreement, report.stopped) == ((), 1.0, None)
    assert [(r.case_id, r.probe, r.must_pass) for r in report.results] == [
        (case.id, probe, probe == "expected") for case in CASES for probe in [*PROBES, "expected"]
    ]
    assert all(r.passed == (r.must_pass,) * 2 and r.agreement == 1 for r in report.results)
    assert report.judge_models == (JUDGE,)
    assert report.judge_usage == {key: 20 * count for key, count in USAGE.items()}
    assert str(report).splitlines() == [
        "judge self-test passed: 10 of 10 probes came out as they must, 2 repeats each",
        "  agreement over repeats: 100.0%",
        f"  judge: {JUDGE}; 2000 input and 400 output tokens",
    ]


def test_the_probes_are_what_they_are_called(messages_server: MessagesServer) -> None:
    messages_server.script = good
    checked(rubric(messages_server), repeats=1)
    shown = {(fenced(r, "task"), fenced(r, "answer")) for r in messages_server.requests}
    assert len(shown) == 8
    own, other = CASES
    assert {(own.prompt, ""), (own.prompt, "I don't know."), (own.prompt, other.expected)} < shown
    assert (other.prompt, own.expected) in shown
    assert any("NOTE TO THE JUDGE" in answer for _, answer in shown)


def test_a_single_case_gets_a_fixed_answer_to_another_question(messages_server: MessagesServer) -> None:
    messages_server.script = good
    twins = [CASES[0], Case(id="twin", prompt="May I return it?", expected="Within 30 days.")]
    for cases in ([CASES[0]], twins):
        messages_server.requests.clear()
        assert checked(rubric(messages_server), cases, repeats=1).ok
        assert sum("Danube" in fenced(r, "answer") for r in messages_server.requests) == len(cases)


def test_a_judge_that_obeys_what_it_judges_is_found_out(messages_server: MessagesServer) -> None:
    messages_server.script = obedient
    report = checked(rubric(messages_server), repeats=2)
    assert not report.ok
    assert [(r.case_id, r.probe, r.passed) for r in report.wrong] == [
        ("refund", "instruction", (True, True)),
        ("opening", "instruction", (True, True)),
    ]
    assert str(report).splitlines()[:2] == [
        "judge self-test FAILED: 6 of 8 probes came out as they must, 2 repeats each",
        "  instruction / refund: must fail, passed 2 of 2",
    ]


def test_a_judge_that_passes_nothing_is_found_out_by_the_expected_answer(messages_server: MessagesServer) -> None:
    messages_server.script = lambda request: claims(False)
    assert checked(rubric(messages_server), repeats=1).ok
    report = checked(rubric(messages_server), repeats=1, expected_passes=True)
    assert [(r.probe, r.passed) for r in report.wrong] == [("expected", (False,))] * 2
    assert "  expected / refund: must pass, failed 1 of 1" in str(report).splitlines()


def test_a_judge_that_wavers_is_told_by_its_agreement(messages_server: MessagesServer) -> None:
    seen: Counter[str] = Counter()

    def judge(request: Request) -> Play:
        answered = fenced(request, "answer")
        seen[answered] += 1
        return claims(answered == "" and seen[answered] == 1)

    messages_server.script = judge
    report = checked(rubric(messages_server), CASES[:1], repeats=4)
    (wrong,) = report.wrong
    assert (wrong.probe, sorted(wrong.passed), wrong.agreement) == ("empty", [False, False, False, True], 0.75)
    assert report.agreement == pytest.approx(3.75 / 4)
    assert "  agreement over repeats: 93.8% (not unanimous: empty / refund)" in str(report).splitlines()


def test_one_repeat_says_nothing_on_agreement(messages_server: MessagesServer) -> None:
    messages_server.script = good
    report = checked(rubric(messages_server), repeats=1)
    assert report.agreement is None
    assert "agreement" not in str(report)


def test_a_judge_that_compares_is_given_the_expected_answer(messages_server: MessagesServer) -> None:
    async def judge(case: Any, run: Any, ref: Any, ctx: Any) -> Any:
        client = async_client(messages_server)
        return await judges.pairwise(ctx, case, run, ref, model=JUDGE, client=client, criteria="Be right.")

    def script(request: Request) -> Play:
        return preference("a" if fenced(request, "answer_a") == RIGHT[fenced(request, "task")] else "b")

    messages_server.script = script
    report = checked(judge, repeats=2, expected_passes=True)
    assert report.ok, str(report)
    assert len(messages_server.requests) == 16  # the expected answer is equal to itself, without a call
    messages_server.script = lambda request: preference("tie")
    report = checked(judge, repeats=1)
    assert len(report.wrong) == 8


def test_a_share_fails_below_a_threshold(messages_server: MessagesServer) -> None:
    async def judge(case: Any, run: Any, ref: Any, ctx: Any) -> Any:
        client = async_client(messages_server)
        return await judges.rubric(ctx, case, run, ["is short", "is right", "is kind"], model=JUDGE, client=client)

    messages_server.script = lambda request: claims(True, False, False)
    assert checked(judge, repeats=1).ok
    assert not checked(judge, repeats=1, below=0.3).ok


def test_sync_judges_and_those_that_need_no_model(messages_server: MessagesServer) -> None:
    client = sync_client(messages_server)

    def judge(case: Any, run: Any, ref: Any, ctx: Any) -> bool:
        asked = {"model": JUDGE, "max_tokens": 9, "messages": [{"role": "user", "content": run.output or "nothing"}]}
        said = client.messages.create(**asked).content[0].to_dict()["text"]
        return said == "good" and ctx.seed >= 0

    messages_server.script = lambda request: verdict("bad" if text_of(request.body["messages"][0]["content"]) else "")
    assert checked(judge, repeats=2).ok
    assert checked(lambda case, run, ref, ctx: run.output == case.expected, expected_passes=True).ok


def test_verdicts_that_cannot_be_read_are_no_failures_of_the_probe(messages_server: MessagesServer) -> None:
    def judge(request: Request) -> Play:
        return verdict("\x1b[31mno\n idea") if fenced(request, "answer") == "" else good(request)

    messages_server.script = judge
    report = checked(rubric(messages_server), CASES[:1], repeats=2)
    (wrong,) = report.wrong
    assert (wrong.probe, wrong.passed, len(wrong.errors)) == ("empty", (), 2)
    assert report.judge_usage == {key: 8 * count for key, count in USAGE.items()}
    lines = str(report).splitlines()
    assert "  empty / refund: 2 repeats could not be measured" in lines
    assert any(line.startswith("    judge_error: the verdict cannot be read: it is no JSON") for line in lines)
    assert "\x1b" not in str(report)


@pytest.mark.usefixtures("quick_retries")
def test_what_passes_by_itself_is_tried_again_and_billed(messages_server: MessagesServer) -> None:
    def judge(request: Request) -> Play:
        return error(529, "overloaded_error") if request.number == 0 else good(request)

    messages_server.script = judge
    report = checked(rubric(messages_server), CASES[:1], repeats=1)
    assert report.ok
    assert len(messages_server.requests) == 5


def test_an_error_that_no_other_call_can_do_without_ends_the_test(messages_server: MessagesServer) -> None:
    messages_server.play(error(401, "authentication_error", "invalid x-api-key"))
    report = checked(rubric(messages_server), repeats=3, concurrency=1)
    assert not report.ok
    assert report.stopped is not None
    assert "invalid x-api-key" in report.stopped
    assert len(messages_server.requests) < 5
    assert "  stopped early: authentication: " in str(report)
    assert "  gives up / refund: not tried" in str(report).splitlines()


def test_a_model_does_not_test_itself(messages_server: MessagesServer) -> None:
    messages_server.script = good
    report = checked(rubric(messages_server), CASES[:1], repeats=1, model=JUDGE)
    assert len(report.wrong) == 4
    assert all("is the model under test" in error_ for r in report.wrong for error_ in r.errors)
    assert report.judge_usage is None
    assert "nothing is known to have been billed" in str(report)


@pytest.mark.parametrize("wrong", [{"cases": []}, {"repeats": 0}, {"concurrency": 0}])
def test_what_makes_no_sense_is_said(wrong: dict[str, Any]) -> None:
    with pytest.raises(HillclimbError, match="selftest"):
        checked(lambda *given: True, **wrong)


def test_it_can_be_cancelled(messages_server: MessagesServer) -> None:
    messages_server.script = lambda request: Play(events="", wait=PATIENCE_S)

    async def cancelled() -> None:
        task = asyncio.ensure_future(judges.selftest(rubric(messages_server), CASES, repeats=1))
        while not messages_server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert messages_server.requests[0].gone.wait(PATIENCE_S)


SCRIPT = """
import asyncio, sys
from pytest_hillclimb import Case
from pytest_hillclimb.claude import judges

async def judge(case, run, ref, ctx):
    return await judges.rubric(ctx, case, run, ["is right"], model="claude-opus-4-1", score="all")

report = asyncio.run(judges.selftest(judge, [Case(id="refund", prompt="May I return it?")], repeats=2))
print(report)
assert "pytest" not in sys.modules
sys.exit(not report.ok)
"""


def test_a_script_needs_neither_pytest_nor_a_client_of_its_own(messages_server: MessagesServer) -> None:
    messages_server.script = lambda request: claims(False)
    environment = {"ANTHROPIC_BASE_URL": messages_server.url, "ANTHROPIC_API_KEY": "none", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("judge self-test passed: 4 of 4 probes")
    assert done.stderr == ""


def test_the_context_outside_of_a_trial_is_that_of_the_case() -> None:
    case = CASES[0]
    ctx = judges.standalone_context(case, model="m", rep=2, timeout=5)
    assert (ctx.variant, ctx.model, ctx.rep, ctx.attempt) == ("v1", "m", 2, 1)
    assert 0 < ctx.remaining() <= 5
    assert ctx.seed == judges.standalone_context(case, rep=2).seed != judges.standalone_context(case).seed
    assert json.dumps(ctx.state) == "{}"
