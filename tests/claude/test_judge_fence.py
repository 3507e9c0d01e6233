"""Fences: whatever a text holds, it stays inside."""

from __future__ import annotations

import re
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hillclimb.claude.judges.fence import Fence, text_of

PIECES = ["<", "</", "answer", "ANSWER_A", "task", "background", "-", ">", " ", "\n", "&lt;", "0", "\u200b", "\uff1c"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=80)


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.integers(0, 2**32 - 1))
def test_no_text_can_hold_a_mark(text: str, seed: int) -> None:
    own = Fence(seed).code
    told = text.replace("0", own)  # as if it knew the code that it would have got
    fence = Fence(seed, told)
    fenced = fence.around("answer", told)
    assert fenced.startswith(f"<answer-{fence.code}>\n")
    assert fenced.endswith(f"\n</answer-{fence.code}>")
    assert fenced.count(fence.code) == 2
    inside = fenced.removeprefix(f"<answer-{fence.code}>\n").removesuffix(f"\n</answer-{fence.code}>")
    assert not re.search(r"<\s*/?\s*(answer|task|background)", inside, re.IGNORECASE)
    assert inside.replace("&lt;", "<") == told.replace("&lt;", "<")


def test_a_text_without_marks_is_left_as_it_is() -> None:
    text = "<p>1 < 2 && </p> <b>answers</b>"
    assert text in Fence(7, text).around("answer", text)


def test_the_code_depends_on_seed_and_texts_alone() -> None:
    assert Fence(1, "a", "b").code == Fence(1, "b", "a").code == Fence(1).code != Fence(2).code


def test_outputs_as_texts() -> None:
    assert [text_of(each) for each in (None, "", " a\r\nb \n", 1.5, ["é"], {"a": None})] == [
        "",
        "",
        "a\nb",
        "1.5",
        '["é"]',
        '{"a":null}',
    ]


def test_the_sdk_is_loaded_when_a_judge_is_and_not_before() -> None:
    code = (
        "import sys, pytest_hillclimb\n"
        "from pytest_hillclimb.claude import judges\n"
        "judges.JudgeError, judges.SelfTestReport, dir(judges)\n"
        "assert not {'anthropic', 'pytest', 'httpx2'} & set(sys.modules)\n"
        "assert all(callable(getattr(judges, name)) for name in judges.__all__)\n"
        "assert 'anthropic' in sys.modules and 'pytest' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
