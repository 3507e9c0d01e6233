"""Pairwise judging: blind requests to a scripted judge, and the wins that its verdicts are."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from claude_lab import async_client
from judge_lab import CASE, JUDGE, USAGE, context, fenced, preference, shape, verdict
from messages_server import MessagesServer, Play, Request

from pytest_hillclimb.claude import judges
from pytest_hillclimb.claude.judges import JudgeError
from pytest_hillclimb.errors import HillclimbError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.grade import Grade, read_grade
from pytest_hillclimb.model.jsonable import compact
from pytest_hillclimb.model.redaction import Redactor
from pytest_hillclimb.model.run import Run

NEW, OLD = "Within 30 days.", "Yes, you may return it, and thank you for asking."
DOUBLE = {"input_tokens": 200, "output_tokens": 40, "cache_read_input_tokens": 14}


def compared(
    server: MessagesServer, new: Any = NEW, old: str | None = OLD, *, case: Case = CASE, **options: Any
) -> Grade:
    """Return what the judge makes of a candidate and a reference."""
    ctx = options.pop("ctx", None) or context(case)

    async def judged() -> Grade:
        async with async_client(server) as client:
            settings = {"model": JUDGE, "client": client, "criteria": "Prefer the shorter one.", **options}
            return await judges.pairwise(ctx, case, Run(output=new), old, **settings)

    return asyncio.run(judged())


def preferring(text: str) -> Any:
    """Return a judge that prefers *text* wherever it is shown."""
    return lambda request: preference("a" if fenced(request, "answer_a") == text else "b")


def always(which: str) -> Any:
    return lambda request: preference(which)


@pytest.mark.parametrize("number", range(6))
def test_a_win_is_a_win_wherever_the_candidate_is_shown(messages_server: MessagesServer, number: int) -> None:
    case = Case(id=f"case-{number}", prompt="May I?")
    for text, win in ((NEW, 1), (OLD, 0)):
        messages_server.script = preferring(text)
        grade = compared(messages_server, case=case)
        assert grade.grade == {"win": win}
        assert (grade.judge_model, grade.judge_usage) == (JUDGE, USAGE)
        place = "A" if fenced(messages_server.requests[-1], "answer_a") == NEW else "B"
        assert re.search(f"{place} is the candidate|{place} the candidate", grade.explanation["win"])
        assert grade.explanation["win"].endswith(": it is shorter")
        assert read_grade(grade).passed is None


def test_the_order_is_drawn_for_each_case_and_repetition(messages_server: MessagesServer) -> None:
    messages_server.script = preferring(NEW)
    for number in range(10):
        for rep in (0, 1):
            case = Case(id=f"case-{number}", prompt="May I?")
            compared(messages_server, case=case, ctx=context(case, rep=rep))
    first = [fenced(request, "answer_a") == NEW for request in messages_server.requests]
    assert 4 <= sum(first) <= 16
    assert first[::2] != first[1::2]
    compared(messages_server, case=Case(id="case-0", prompt="May I?"))
    assert (fenced(messages_server.requests[-1], "answer_a") == NEW) is first[0]


@pytest.mark.parametrize(("which", "win"), [("tie", 0.5), ("both_bad", 0)])
def test_a_tie_is_half_a_win_and_both_bad_is_none(messages_server: MessagesServer, which: str, win: float) -> None:
    messages_server.script = always(which)
    grade = compared(messages_server, name="better")
    assert grade.grade == {"better": win}
    assert grade.explanation["better"].startswith(f"{which} (A is the ")


def test_the_judge_is_asked_through_the_schema_feature_of_the_api(messages_server: MessagesServer) -> None:
    messages_server.script = always("tie")
    compared(messages_server, criteria=["Prefer the shorter one.", "It must name\na deadline."])
    (request,) = messages_server.requests
    schema = shape(request)
    assert list(schema["properties"]) == schema["required"] == ["reason", "verdict"]
    assert schema["properties"]["verdict"]["enum"] == ["a", "b", "tie", "both_bad"]
    assert request.prompt.endswith("Criteria:\n- Prefer the shorter one.\n- It must name a deadline.")
    assert fenced(request, "task") == "May I return it?"


def _told(request: Request) -> tuple[dict[str, Any], dict[str, str]]:
    """Return all that a request tells: body, headers."""
    return request.body, request.headers


def test_nothing_tells_the_judge_which_answer_is_the_reference(messages_server: MessagesServer) -> None:
    messages_server.script = always("tie")
    compared(messages_server, NEW, OLD, both_orders=True)
    compared(messages_server, OLD, NEW, both_orders=True)
    new_first, new_second, old_first, old_second = messages_server.requests
    assert _told(new_first) == _told(old_second)
    assert _told(new_second) == _told(old_first)
    assert _told(new_first) != _told(new_second)


def test_no_word_of_a_request_names_a_role(messages_server: MessagesServer) -> None:
    messages_server.script = always("tie")
    compared(messages_server)
    told = json.dumps(messages_server.requests[0].body).lower()
    roles = ("candidate", "reference", "baseline", "variant", "v1", "refund", "frozen", "new", "old", "round", ".txt")
    assert [role for role in roles if re.search(rf"\b{re.escape(role)}\b", told)] == []


def test_a_reference_has_the_form_that_its_output_had(messages_server: MessagesServer) -> None:
    messages_server.script = always("tie")
    compared(messages_server, {"days": 30, "note": "à"}, '{"days":31,"note":"à"}\r\n')
    (request,) = messages_server.requests
    shown = sorted([fenced(request, "answer_a"), fenced(request, "answer_b")])
    assert shown == ['{"days":30,"note":"à"}', '{"days":31,"note":"à"}']


@pytest.mark.parametrize(
    ("new", "old"),
    [(NEW, NEW), (NEW, f"{NEW}\n"), ("a\nb", "a\r\nb\r\n"), ({"a": 1}, '{"a":1}'), ("", ""), (None, "\n")],
)
def test_equal_answers_tie_without_a_call(messages_server: MessagesServer, new: Any, old: str) -> None:
    grade = compared(messages_server, new, old, both_orders=True)
    assert (grade.grade, grade.judge_usage) == ({"win": 0.5}, None)
    assert "equal" in grade.explanation["win"]
    assert messages_server.requests == []
    assert "judge_usage" not in grade.model_fields_set


def test_the_baseline_is_neutral_without_a_call(messages_server: MessagesServer) -> None:
    grade = compared(messages_server, old=None, ctx=context(variant="baseline"))
    assert grade.grade == {"win": 0.5}
    assert grade.explanation["win"].startswith("neutral")
    assert messages_server.requests == []


def test_a_later_round_without_a_reference_has_no_score(messages_server: MessagesServer) -> None:
    with pytest.raises(HillclimbError, match=r"no reference for case 'refund'; run the case in the baseline first"):
        compared(messages_server, old=None)
    assert messages_server.requests == []


@pytest.mark.parametrize("variant", ["baseline", "v1"])
def test_a_model_does_not_judge_itself_not_even_where_no_call_is_needed(
    messages_server: MessagesServer, variant: str
) -> None:
    with pytest.raises(JudgeError, match="allow_self_judge"):
        compared(messages_server, old=None, ctx=context(variant=variant, model="claude-opus-4-1-20250805"))


def by_place(first: str, second: str) -> Any:
    """Return a judge that says *first* to the first request, and *second* to the second."""
    return lambda request: preference([first, second][request.number])


@pytest.mark.parametrize(
    ("judge", "win"),
    [
        (preferring(NEW), 1),
        (preferring(OLD), 0),
        (always("tie"), 0.5),
        (always("both_bad"), 0),
        (always("a"), 0.5),
        (always("b"), 0.5),
        (by_place("tie", "a"), 0.5),
    ],
)
def test_both_orders_must_agree(messages_server: MessagesServer, judge: Any, win: float) -> None:
    messages_server.script = judge
    grade = compared(messages_server, both_orders=True)
    assert grade.grade == {"win": win}
    assert (grade.judge_model, grade.judge_usage) == (JUDGE, DOUBLE)
    first, second = messages_server.requests
    assert fenced(first, "answer_a") == fenced(second, "answer_b")
    assert len(grade.explanation["win"].splitlines()) >= 2


def test_a_loss_in_one_order_and_both_bad_in_the_other_is_no_tie(messages_server: MessagesServer) -> None:
    def judge(request: Request) -> Play:
        return preference("both_bad") if request.number else preferring(OLD)(request)

    messages_server.script = judge
    assert compared(messages_server, both_orders=True).grade == {"win": 0}


UNREADABLE = [
    verdict("A is better."),
    verdict({"verdict": "a"}),
    verdict({"reason": "r", "verdict": "A"}),
    verdict({"reason": "r", "verdict": "candidate"}),
    verdict({"reason": "r", "verdict": None}),
    verdict({"reason": "r", "verdict": "a", "confidence": 1}),
    preference("a", stop_reason="refusal"),
    preference("a", stop_reason="max_tokens"),
    verdict(""),
]


@pytest.mark.parametrize("play", UNREADABLE)
def test_a_verdict_that_cannot_be_read_is_no_win(messages_server: MessagesServer, play: Play) -> None:
    messages_server.play(play)
    with pytest.raises(JudgeError) as caught:
        compared(messages_server)
    found = caught.value
    assert (found.failure_class, found.judge_model, found.judge_usage) == ("judge_error", JUDGE, USAGE)


def test_what_the_first_order_cost_is_kept_when_the_second_fails(messages_server: MessagesServer) -> None:
    messages_server.play(preference("a"), verdict("B, of course."))
    with pytest.raises(JudgeError, match="no JSON") as caught:
        compared(messages_server, both_orders=True)
    assert (caught.value.judge_usage, caught.value.excerpt) == (DOUBLE, "B, of course.")


@pytest.mark.parametrize("criteria", ["", " ", [], ["ok", ""], [None]])
def test_criteria_are_needed(messages_server: MessagesServer, criteria: Any) -> None:
    with pytest.raises(HillclimbError, match="criteria"):
        compared(messages_server, criteria=criteria)


SECRETS = Redactor([r"ticket-\d{6}"], {"DEMO_PASSWORD": "swordfish-2024"})
KEY = "sk-ant-api03-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdef"


def stored(output: Any) -> str:
    """Return an output as a reference has it on disk."""
    clean = SECRETS.strict.data(output)
    return clean if isinstance(clean, str) else compact(clean)


@pytest.mark.parametrize(
    "text", [f"Use {KEY} please", "Log in with swordfish-2024.", "See ticket-123456.", "a bearer token"]
)
@pytest.mark.parametrize("wrap", [str, lambda text: {"answer": text, "notes": [text, None]}])
def test_secrets_betray_no_reference(messages_server: MessagesServer, text: str, wrap: Any) -> None:
    ctx = context()
    ctx = replace(ctx, app=replace(ctx.app, redactor=SECRETS))
    messages_server.script = always("a")
    for old in (stored(wrap(text)), wrap(text) if isinstance(wrap(text), str) else compact(wrap(text))):
        grade = compared(messages_server, wrap(text), old, ctx=ctx)
        assert (grade.grade, grade.explanation["win"]) == ({"win": 0.5}, "tie: the answer is equal to the reference")
    assert not messages_server.requests
    compared(messages_server, wrap(f"{text} new"), stored(wrap(f"{text} old")), ctx=ctx)
    shown = [fenced(messages_server.requests[0], name) for name in ("answer_a", "answer_b")]
    assert len({each.replace(" new", " old") for each in shown}) == 1
    assert not any(secret in each for secret in (KEY, "swordfish-2024", "ticket-123456") for each in shown)


@pytest.mark.parametrize("reason", ["", "  ", "."])
def test_a_preference_without_a_reason_is_none(messages_server: MessagesServer, reason: str) -> None:
    messages_server.script = lambda request: preference("a", reason)
    with pytest.raises(JudgeError, match=r"reason: .*no reason is given") as caught:
        compared(messages_server)
    assert (caught.value.failure_class, caught.value.judge_usage) == ("judge_error", USAGE)
