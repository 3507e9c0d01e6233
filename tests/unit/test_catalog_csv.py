"""Cases in CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from catalog_files import cases, fields, read, refusal


def test_cells_are_text_and_empty_ones_are_absent(tmp_path: Path) -> None:
    text = (
        "id,prompt,tags,expected,input,meta,attachments,note\n"
        '007,Hi,"a; b,,c ;",1.10,TRUE,"{""n"": 1}","[{""kind"": ""url"", ""ref"": ""r""}]",x\n'
        "1e5,,,,,,,\n"
        "short\n"
    )
    full, empty, short = cases(tmp_path, "c.csv", text)
    assert fields(full) == {
        "id": "007",
        "prompt": "Hi",
        "tags": ("a", "b", "c"),
        "expected": "1.10",
        "input": "TRUE",
        "meta": {"n": 1},
        "attachments": ({"kind": "url", "ref": "r"},),
        "note": "x",
    }
    assert fields(empty) == {"id": "1e5"}
    assert fields(short) == {"id": "short"}


def test_a_record_of_csv_may_span_lines(tmp_path: Path) -> None:
    text = '\ufeffid, prompt\r\nlate,"Where?\r\nIt was ""due""."\r\n\r\n  \r\nspace ,\u2028\r\n'
    late, space = read(tmp_path, "c.csv", text)
    assert late.case.prompt == 'Where?\r\nIt was "due".'
    assert (space.case.id, space.case.prompt) == ("space ", "\u2028")
    assert (late.position, space.position) == ("line 2", "line 6")


def test_a_long_cell_is_read_and_the_limit_of_other_readers_stays(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    assert cases(tmp_path, "c.csv", "id,prompt\na," + "z" * (limit + 1))[0].prompt == "z" * (limit + 1)
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id,prompt\na,b\n,c\n", "line 3: id is empty"),
        ('id,prompt\n"a\nb",c\n,d\n', "line 4: id is empty"),
        ("id,prompt\na,b,c\n", "line 2: 3 cells for 2 columns"),
        ("\nid,id\n", "line 2: two columns are called 'id'"),
        ("id,,x\n", "line 1: column 2 has no name"),
        ("id;prompt\n", "line 1: no column is called 'id'"),
        ('id,x\na,"b\n', "line 2: not valid CSV"),
        ('id,x\na,"b"c\n', "line 2: not valid CSV"),
        ("id,meta\na,\nb,{\n", "line 3: meta: not valid JSON"),
        ('id,meta\na,"{""k"": 1, ""k"": 2}"\n', "line 2: meta.k: the key appears twice"),
        ("id,attachments\na,{}\n", "line 2: attachments must be a list"),
    ],
)
def test_a_flaw_of_a_csv_file_is_located(tmp_path: Path, text: str, problem: str) -> None:
    assert f"evals/c.csv, {problem}" in refusal(tmp_path, "c.csv", text)
