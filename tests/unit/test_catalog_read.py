"""What every reader of cases does alike."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from catalog_files import cases, fields, read, refusal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_hillclimb.catalog import entries_from, read_catalog
from pytest_hillclimb.errors import CatalogError
from pytest_hillclimb.model.case import Case

quick = settings(
    derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "# nothing yet\n"),
        ("c.yaml", "---\n"),
        ("c.yml", "[]"),
        ("c.yaml", "cases:\n"),
        ("c.json", ""),
        ("c.json", "[]"),
        ("c.json", '{"cases": []}'),
        ("c.jsonl", "\n \r\n"),
        ("c.csv", ""),
        ("c.csv", "id,prompt,tags\n"),
    ],
)
def test_a_catalog_without_cases_is_refused(tmp_path: Path, name: str, text: str) -> None:
    assert refusal(tmp_path, name, text) == f"evals/{name}: holds no cases"


@pytest.mark.parametrize("name", ["c.yaml", "c.json", "c.jsonl", "c.csv"])
def test_bytes_that_are_not_utf8_are_refused_by_line(tmp_path: Path, name: str) -> None:
    assert f"evals/{name}, line 2: the byte 0xe9" in refusal(tmp_path, name, b"\n\xe9")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "- id: a\r\n  x: b\r\n"),
        ("c.json", '[{"id": "a",\r\n "x": "b"}]'),
        ("c.jsonl", '{"id": "a", "x": "b"}\r\n'),
        ("c.csv", "id,x\r\na,b\r\n"),
        ("C.YML", "- {id: a, x: b}"),
    ],
)
def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path, name: str, text: str) -> None:
    [case] = cases(tmp_path, name, b"\xef\xbb\xbf" + text.encode())
    assert fields(case) == {"id": "a", "x": "b"}


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").mkdir()
    for name, why in [("d.yaml", "not a regular file"), ("none.csv", "cannot be read"), ("c.txt", "suffix '.txt'")]:
        with pytest.raises(CatalogError, match=why):
            read_catalog(tmp_path / name, name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "[" * 5000),
        ("c.yaml", "- id: a\n  x: " + "[" * 250 + "]" * 250),
        ("c.yaml", "&a [*a]"),
        ("c.yaml", "- &a {<<: *a, id: b}"),
        ("c.json", "[" * 100_000),
        ("c.json", '[{"id": "a", "x": ' + "[" * 250 + "]" * 250 + "}]"),
        ("c.jsonl", '{"id": "a", "x": ' + "[" * 100_000),
        ("c.csv", "id,meta\na," + "[" * 100_000),
    ],
)
def test_too_deep_nesting_is_refused(tmp_path: Path, name: str, text: str) -> None:
    assert "nested" in refusal(tmp_path, name, text)


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ({}, "id is missing"),
        ({"id": None}, "id is null"),
        ({"id": ""}, "id is empty"),
        ({"id": ["a"]}, "id must be a text or a number, not a list"),
        ({"id": "a", "tags": {"x": 1}}, "tags must be a text or a list of texts, not a mapping"),
        ({"id": "a", "tags": [["x"]]}, "tags[0] must be a text, not a list"),
        ({"id": "a", "tags": ["x", None]}, "tags[1] must be a text, not null"),
        ({"id": "a", "meta": [1]}, "meta must be a mapping, not a list"),
        ({"id": "a", "attachments": {}}, "attachments must be a list of mappings"),
        ({"id": "a", "attachments": [{"kind": "url"}]}, "attachments[0].ref"),
        ("a", "expected a mapping of fields with an id, got a text"),
        ([], "expected a mapping of fields with an id, got a list"),
    ],
)
def test_a_field_of_another_kind_is_refused_by_name(tmp_path: Path, case: object, problem: str) -> None:
    good = {"id": "good"}
    lines = f"{json.dumps(good)}\n\n{json.dumps(case)}\n"
    assert f"evals/c.jsonl, line 3: {problem}" in refusal(tmp_path, "c.jsonl", lines)
    assert f"evals/c.json, case 2: {problem}" in refusal(tmp_path, "c.json", json.dumps([good, case]))
    block = f"- {json.dumps(good)}\n-\n  {json.dumps(case)}\n"
    assert f"evals/c.yaml, line 3: {problem}" in refusal(tmp_path, "c.yaml", block)
    with pytest.raises(CatalogError) as caught:
        entries_from([good, case], "evals/conftest.py")
    assert f"evals/conftest.py, case 2: {problem}" in caught.value.message


def test_null_is_absent_except_for_input_and_expected(tmp_path: Path) -> None:
    line = (
        '{"id": "a", "prompt": null, "tags": null, "attachments": null, "meta": null, "expected": null, "input": null}'
    )
    [case] = cases(tmp_path, "c.jsonl", line)
    assert case.model_fields_set == {"id", "input", "expected"}


def test_unknown_fields_are_kept_whatever_they_are_called(tmp_path: Path) -> None:
    extras = {
        name: {"q": [1]}
        for name in ("note", "model_extra", "copy", "json", "schema", "model_config", "safe_id", "stored_prompt")
    }
    [case] = cases(tmp_path, "c.json", json.dumps([{"id": "a/b", **extras}]))
    assert case.model_extra == extras
    assert case.safe_id == "a_b-c14cddc0"
    assert case.stored_prompt == "a/b"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda value: st.lists(value, max_size=3) | st.dictionaries(st.text(), value, max_size=3),
    max_leaves=6,
)
json_cases = st.builds(
    lambda extras, known: {**extras, **known},
    st.dictionaries(st.text().filter(lambda name: name not in Case.model_fields), json_values, max_size=3),
    st.fixed_dictionaries(
        {"id": st.text(min_size=1)},
        optional={
            "prompt": json_values,
            "input": json_values,
            "expected": json_values,
            "tags": st.text() | st.lists(st.text(), max_size=3),
            "meta": st.dictionaries(st.text(), json_values, max_size=3),
            "attachments": st.lists(st.fixed_dictionaries({"kind": st.text(), "ref": st.text()}), max_size=2),
        },
    ),
)


@quick
@given(st.lists(json_cases, min_size=1, max_size=4), st.booleans())
def test_every_json_format_and_the_hook_read_the_same_cases(
    tmp_path: Path, given_cases: list[dict[str, Any]], ascii_only: bool
) -> None:
    lines = "\n".join(json.dumps(case, ensure_ascii=ascii_only) for case in given_cases)
    from_hook = [entry.case for entry in entries_from(given_cases, "conftest.py")]
    assert cases(tmp_path, "c.jsonl", lines) == from_hook
    assert cases(tmp_path, "c.json", json.dumps(given_cases, indent=1, ensure_ascii=ascii_only)) == from_hook
    assert [case.id for case in from_hook] == [case["id"] for case in given_cases]


fragments = st.sampled_from(
    [
        "- ",
        "id: ",
        "a",
        "\n",
        "  ",
        "[",
        "]",
        "{",
        "}",
        ",",
        '"',
        "'",
        "&a ",
        "*a",
        "<<: ",
        "!x ",
        "!!int ",
        "|\n",
        "? ",
    ]
) | st.sampled_from(
    ["%TAG ", "---\n", "~", "\\UFFFFFFFF", "\t", "\r", "\x85", "\ufeff", "\x00", "@", "NaN", "1e999", '{"id":"a"}']
)


@quick
@given(st.lists(fragments, max_size=15).map("".join), st.sampled_from(["c.yaml", "c.json", "c.jsonl", "c.csv"]))
def test_no_text_makes_a_reader_crash(tmp_path: Path, text: str, name: str) -> None:
    for start in ("", "- id: a\n  x: ", "id,x,meta\n", '{"id":"a","x":'):
        with contextlib.suppress(CatalogError):
            assert read(tmp_path, name, start + text)
