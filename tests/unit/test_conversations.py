"""Transcripts of attempts that made several calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_hillclimb.engine.conversations import Spoken, merged
from pytest_hillclimb.model.run import Turn


def turns(text: str) -> list[Turn]:
    """Return turns from words such as ``u1 a1 s1``: role by the first letter."""
    roles = {"s": "system", "u": "user", "a": "assistant", "c": "tool_call", "r": "tool_result"}
    return [Turn(role=roles[word[0]], content=word) for word in text.split()]


def said(calls: list[Spoken]) -> str:
    return " ".join(str(turn.content) for turn in merged(calls))


def call(asked: str, answered: str, whole: bool = True) -> Spoken:
    return Spoken(turns(asked), turns(answered), whole)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([], ""),
        ([call("s1 u1", "a1")], "s1 u1 a1"),
        ([call("u1", "a1 c1"), call("u1 a1 c1 r1", "a2")], "u1 a1 c1 r1 a2"),
        ([call("s1 u1", "a1"), call("s1 u1 a1 u2", "a2"), call("s1 u1 a1 u2 a2 u3", "a3")], "s1 u1 a1 u2 a2 u3 a3"),
        ([call("s1 u1", "a1"), call("s2 u1 a1 u2", "a2")], "s1 u1 a1 s2 u2 a2"),
        ([call("s1 u1", "a1"), call("u1 a1 u2", "a2")], "s1 u1 a1 u2 a2"),
        ([call("u1", "a1"), call("u1", "a2")], "u1 a1 u1 a2"),
        ([call("u1", "a1"), call("u2", "a2"), call("u1 a1 u3", "a3")], "u1 a1 u3 a3 u2 a2"),
        ([call("u1", "a1", whole=False), call("u1", "a2")], "u1 a2"),
        ([call("s1 u1", "c1 a1", whole=False), call("s1 u1", "a2"), call("s1 u1 a2 u2", "a3")], "s1 u1 a2 u2 a3"),
        ([call("u1", "a1", whole=False)], "u1 a1"),
        ([call("u1", "", whole=False), call("u1", "a1")], "u1 a1"),
        ([call("u1", "a1", whole=False), call("u2", "a2")], "u1 a1 u2 a2"),
        ([call("u1", "a1"), call("u1 a1", "a2")], "u1 a1 a2"),
        ([call("", "a1"), call("", "a2")], "a1 a2"),
        ([call("u1 a0", "a1"), call("u1 a9 u2", "a2")], "u1 a0 a1 u1 a9 u2 a2"),
    ],
)
def test_each_turn_stands_once(calls: list[Spoken], expected: str) -> None:
    assert said(calls) == expected


def test_a_request_may_repeat_turns_without_their_thinking_and_trimmed() -> None:
    thought = Turn(role="assistant", content="a1 ", thinking="hm")
    calls = [Spoken(turns("u1"), [thought]), call("u1 a1 u2", "a2")]
    assert merged(calls) == [*turns("u1"), thought, *turns("u2 a2")]


def result(content: str, role: str = "tool_result") -> Turn:
    return Turn(role=role, content=content)


@pytest.mark.parametrize(
    ("given_", "repeated", "is_known"),
    [
        ('{"b": 1, "a": {"d": 2, "c": null}}', '{"a": {"d": 2}, "b": 1}', True),
        ('[{"url": "u", "page_age": null}]', '[{"page_age": null, "url": "u"}]', True),
        ('{"a": 1, "added": 2}', '{"a": 1}', True),
        ('{"a": 1}', '{"a": 2}', False),
        ('{"a": 1, "b": 2}', '{"a": 1, "c": 2}', False),
        ("[1, 2]", "[1]", False),
        ("{broken", "{broken", True),
        ("[" * 5000, "[" * 5000, True),
    ],
)
def test_results_of_the_api_are_known_again_however_the_sdk_sends_them_back(
    given_: str, repeated: str, is_known: bool
) -> None:
    calls = [
        Spoken(turns("u1"), [result(given_)]),
        Spoken([*turns("u1"), result(repeated), *turns("u2")], turns("a2")),
    ]
    assert (len(merged(calls)) == 4) is is_known


def test_a_call_of_a_tool_is_known_by_all_its_arguments() -> None:
    for repeated, is_known in (('{"b": 1, "a": 2}', True), ('{"a": 2}', False)):
        calls = [
            Spoken(turns("u1"), [result('{"a": 2, "b": 1}', "tool_call")]),
            Spoken([*turns("u1"), result(repeated, "tool_call"), *turns("r1")], turns("a2")),
        ]
        assert (len(merged(calls)) == 4) is is_known


def test_a_call_may_name_the_answer_that_it_continues() -> None:
    calls = [
        Spoken(turns("s1 u1"), turns("c1"), id="1"),
        Spoken(turns("s1 u2"), turns("c2"), id="2"),
        Spoken(turns("r1"), turns("a9"), whole=False, continues="1"),
        Spoken(turns("r1"), turns("a1"), id="3", continues="1"),
        Spoken(turns("r2"), turns("a2"), id="4", continues="2"),
        Spoken(turns("u3"), turns("a3"), id="5", continues="3"),
        Spoken(turns("u4"), turns("a4"), continues="unknown"),
    ]
    assert said(calls) == "s1 u1 c1 r1 a1 u3 a3 s1 u2 c2 r2 a2 u4 a4"


@given(st.lists(st.lists(st.sampled_from(["u1", "u2", "r1"]), min_size=1, max_size=3), min_size=1, max_size=5))
def test_a_conversation_is_its_last_request_and_answer(rounds: list[list[str]]) -> None:
    history: list[str] = []
    calls = []
    for number, new in enumerate(rounds):
        history += new
        calls.append(call(" ".join(history), f"a{number}"))
        history.append(f"a{number}")
    assert said(calls) == " ".join(history)


@given(st.lists(st.tuples(st.text("ua", max_size=3), st.text("ca", max_size=2), st.booleans()), max_size=6))
def test_no_answer_that_came_to_its_end_is_lost(drawn: list[tuple[str, str, bool]]) -> None:
    calls = [
        call(" ".join(asked), " ".join(f"{a}{n}" for a in got), whole) for n, (asked, got, whole) in enumerate(drawn)
    ]
    kept = {str(turn.content) for each in calls if each.whole for turn in each.answered}
    assert kept <= set(said(calls).split())
