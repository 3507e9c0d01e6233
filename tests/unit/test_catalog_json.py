"""Cases in JSON and JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from catalog_files import cases, read, refusal


def test_scalars_become_ids_and_tags_as_text(tmp_path: Path) -> None:
    [one, two] = cases(tmp_path, "c.json", '{"v": 1, "cases": [{"id": 1.0, "tags": [1, true, "x"]}, {"id": false}]}')
    assert (one.id, one.tags) == ("1", ("1", "true", "x"))
    assert two.id == "false"


def test_a_tag_that_is_a_text_is_one_tag(tmp_path: Path) -> None:
    assert cases(tmp_path, "c.jsonl", '{"id": "a", "tags": "smoke, slow"}')[0].tags == ("smoke, slow",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[\n{"id": "a"},\n]', "line 3: not valid JSON at column 1"),
        ('[{"id": "a", "id": "b"}]', "case 1: id: the key appears twice"),
        ('[{"id": "a"}, {"id": "b", "m": [{"k": 1, "k": 2}]}]', "case 2: m[0].k: the key appears twice"),
        ('{"cases": [], "cases": []}', "cases: the key appears twice"),
        ('[{"id": "a", "x": [NaN]}]', "case 1: x[0]: nan is not"),
        ('[{"id": "a", "x": -Infinity}]', "case 1: x: -inf is not"),
        ('[{"id": "a", "x": 1e999}]', "case 1: x: inf is not"),
        ('[{"id": ' + "9" * 5000 + "}]", "case 1: id: inf is not"),
        ('{"id": "a"}', "expected a list of cases"),
        ("null", "got null"),
    ],
)
def test_a_flaw_of_a_json_file_is_located(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in refusal(tmp_path, "c.json", text)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": "b"', "not valid JSON at column 11"),
        ('{"id": "b", "x": 1, "x": 1}', "x: the key appears twice"),
        ('{"id": "b", "x": NaN}', "x: nan is not"),
        ('{"id": "b"} {"id": "c"}', "not valid JSON at column 13"),
        ("\u2028", "not valid JSON"),
    ],
)
def test_a_flaw_of_a_jsonl_file_is_located(tmp_path: Path, line: str, problem: str) -> None:
    assert f"line 3: {problem}" in refusal(tmp_path, "c.jsonl", f'{{"id": "a"}}\n\n{line}\n')


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line_of_jsonl(tmp_path: Path, separator: str) -> None:
    prompt = f"before{separator}after"
    if separator >= " ":
        text = f'{{"id": "a", "prompt": "{prompt}"}}\n{{"id": "b"}}'
    else:
        text = json.dumps({"id": "a", "prompt": prompt}) + '\n{"id": "b"}'
    [first, second] = read(tmp_path, "c.jsonl", text)
    assert first.case.prompt == prompt
    assert second.where == "evals/c.jsonl, line 2"


def test_escaped_lone_surrogates_are_kept(tmp_path: Path) -> None:
    assert (
        cases(tmp_path, "c.jsonl", '{"id": "a", "prompt": "\\ud835 \\ud83d\\ude00"}')[0].prompt == "\ud835 \U0001f600"
    )
