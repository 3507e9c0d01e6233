"""Text of models and apps on a terminal: it steers nothing, forges no line, and says when it was cut."""

from __future__ import annotations

import pytest

from pytest_hillclimb.report.terminal import MARGIN, block, multiline, one_line

ESC, BEL, CSI, OSC = "\x1b", "\x07", "\x9b", "\x9d"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain caf\u00e9 \U0001f600", "plain caf\u00e9 \U0001f600"),
        (f"{ESC}[31mred{ESC}[0m", "red"),
        (f"{ESC}[2J{ESC}[1;1Hhome", "home"),
        (f"{ESC}[?25l{ESC}[38;2;1;2;3mx", "x"),
        (f"a{ESC}]0;title{BEL}b", "ab"),
        (f"a{ESC}]8;;http://x{ESC}\\link{ESC}]8;;{ESC}\\b", "alinkb"),
        (f"a{ESC}Db{ESC}Mc", "abc"),
        (f"{ESC}{ESC}[31m[31mx", "[31mx"),
        (f"x{ESC}", "x"),
        (f"x{CSI}31my{OSC}z", "x31myz"),
        ("a\nb\r\nc\rd\te\x00f\x0bg\x0ch\x7fi\x85j", "a b c defghij"),
        ("a\bb", "ab"),
        (5, "5"),
        (None, "None"),
    ],
)
def test_escapes_and_control_characters_are_taken_out(text: object, shown: str) -> None:
    assert one_line(text) == shown


@pytest.mark.parametrize("code", [*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
def test_characters_that_turn_the_reading_direction_are_replaced(code: int) -> None:
    assert one_line(f"a{chr(code)}b") == "a\ufffdb"


@pytest.mark.parametrize("code", [0x2028, 0x2029, 0xD800, 0xDFFF, 0xFFFE, 0xFFFF])
def test_characters_that_a_terminal_cannot_show_are_replaced(code: int) -> None:
    assert one_line(f"a{chr(code)}b") == "a\ufffdb"
    one_line(f"a{chr(code)}b").encode()


@pytest.mark.parametrize(
    ("text", "limit", "shown"), [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abc..."), (f"{ESC}[31mabcdef", 6, "abcdef")]
)
def test_a_long_line_is_cut_after_it_was_cleaned(text: str, limit: int, shown: str) -> None:
    assert one_line(text, limit) == shown


def test_every_line_of_a_block_has_the_margin_so_that_none_can_be_forged() -> None:
    forged = "ok\n=== 1 passed in 0.01s ===\r\nFAILED evals\rPASSED\u2028next\x85more\x0bdown"
    lines = block(forged)
    assert all(line.startswith(MARGIN) for line in lines)
    assert lines == [
        "| ok",
        "| === 1 passed in 0.01s ===",
        "| FAILED evals",
        "| PASSED\ufffdnextmoredown",
    ]


def test_an_empty_text_is_one_empty_line() -> None:
    assert block("") == ["| "]


def test_a_block_keeps_indentation_and_expands_tabs() -> None:
    assert block("  a\n\tb") == ["|   a", "|     b"]


def test_a_long_block_says_how_many_lines_are_left_out() -> None:
    assert block("\n".join("abcdef"), lines=4) == ["| a", "| b", "| c", "| d", "| ... (2 more lines)"]


def test_a_wide_line_of_a_block_is_cut() -> None:
    [line] = block("x" * 500, width=20)
    assert line == MARGIN + "x" * 17 + "..."


def test_lines_left_out_are_counted_however_long_the_text_is() -> None:
    assert block("\n".join(["y" * 100] * 1000))[-1] == "| ... (988 more lines)"


def test_no_line_is_left_out_in_silence() -> None:
    lines = block("\n".join(["x" * 1000] * 11 + ["the last line"]))
    assert "the last line" in lines[-1] or "more lines" in lines[-1]


def test_captured_output_keeps_its_lines_and_nothing_else() -> None:
    assert multiline(f"a{ESC}[31m\n\tb\r\nc\rd\u202e") == "a\n        b\nc\nd\ufffd"
