"""Cases in YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalog_files import cases, fields, read, refusal

AS_TYPED = ["no", "yes", "on", "true", "1_000", "0x1F", "0o17", "017", "1e3", "12:30:00", "1.10", "2024-01-01", ".inf"]


@pytest.mark.parametrize("text", [*AS_TYPED, "+5", "-0", "=", ".nan", "2001-12-14t21:59:43.10-05:00", "1__0"])
def test_ids_tags_and_keys_of_yaml_are_the_text_as_typed(tmp_path: Path, text: str) -> None:
    block = f"- id: {text}\n  tags: [{text}, plain]\n  {text}: 1\n"
    flow = f"[{{id: {text}, tags: [{text}, plain], ? {text} : 1}}]"
    for catalog in (block, flow):
        [case] = cases(tmp_path, "c.yaml", catalog)
        assert (case.id, case.tags) == (text, (text, "plain"))
        assert case.model_extra == {text: 1}


@pytest.mark.parametrize("spelled", ["'007'", '"007"', "!!str 007", "&x 007"])
def test_quoted_ids_are_their_text(tmp_path: Path, spelled: str) -> None:
    assert cases(tmp_path, "c.yaml", f"- id: {spelled}\n")[0].id == "007"


@pytest.mark.parametrize("spelled", ["", "~", "null", "Null", "NULL"])
def test_a_null_id_is_refused_and_a_quoted_one_is_text(tmp_path: Path, spelled: str) -> None:
    assert "line 2: id is null" in refusal(tmp_path, "c.yaml", f"- prompt: hi\n  id: {spelled}\n")
    if spelled:
        assert cases(tmp_path, "c.yaml", f"- id: '{spelled}'\n")[0].id == spelled


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("1.10", 1.1),
        ("-0.5e-3", -0.0005),
        ("1e3", 1000.0),
        ("'12'", "12"),
        ("'true'", "true"),
        *((text, text) for text in ("no", "on", "tRUE", "010", "0x1F", "1_0", "+5", ".5", "1.", ".inf", "12:30:00")),
        ("2024-01-01", "2024-01-01"),
        ("\uff11\uff12", "\uff11\uff12"),
    ],
)
def test_few_scalars_of_other_fields_are_typed(tmp_path: Path, spelled: str, value: object) -> None:
    [case] = cases(tmp_path, "c.yaml", f"- id: a\n  expected: {spelled}\n  x: [{{y: {spelled or '~'}}}]\n")
    assert case.expected == value
    assert type(case.expected) is type(value)
    assert case.model_extra == {"x": [{"y": value}]}


def test_aliases_and_merge_keys_work(tmp_path: Path) -> None:
    text = "d: &d {prompt: hi, tags: [no]}\ncases:\n- {<<: *d, id: 1_0}\n- {id: b, <<: [{prompt: first}, *d], x: *d}\n"
    one, two = read(tmp_path, "c.yaml", text)
    assert fields(one.case) == {"id": "1_0", "prompt": "hi", "tags": ("no",)}
    assert fields(two.case) == {"id": "b", "prompt": "first", "tags": ("no",), "x": {"prompt": "hi", "tags": ["no"]}}
    assert (one.where, two.where) == ("evals/c.yaml, line 3", "evals/c.yaml, line 4")


def test_aliases_that_unfold_into_too_much_are_refused(tmp_path: Path) -> None:
    levels = ["- &l0 {id: a, x: [y, y, y, y, y, y, y, y, y]}"]
    levels += [f"- &l{n} {{id: a{n}, x: [{', '.join([f'*l{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    assert "aliases" in refusal(tmp_path, "c.yaml", "\n".join(levels))


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("x: !!int 3", "the tag '!!int' is not allowed"),
        ("x: !foo [1]", "the tag '!foo' is not allowed"),
        ("x: !!python/object/apply:os.getcwd []", "the tag '!!python/object/apply:os.getcwd'"),
        ("x: {k: 1, k: 2}", "the key 'k' appears twice"),
        ("id: b", "the key 'id' appears twice"),
        ("? [x]\n  : 1", "a key must be a text"),
        ("<<: 1", "'<<' takes a mapping"),
        ("x: *unknown", "not valid YAML"),
        ("x: b: c", "not valid YAML"),
        ("x: 1e999", "x: inf is not"),
        ('x: "\\UFFFFFFFF"', "not valid YAML"),
        ("x: a\x1bb", "not valid YAML: the character U+001B"),
        ("meta: [1]", "meta must be a mapping"),
    ],
)
def test_a_flaw_of_a_yaml_file_is_located(tmp_path: Path, lines: str, problem: str) -> None:
    assert f"evals/c.yaml, line 3: {problem}" in refusal(tmp_path, "c.yaml", f"# head\n- id: a\n  {lines}\n")


@pytest.mark.parametrize("text", ["id: lonely\nprompt: x\n", "just text", "cases: {a: 1}"])
def test_a_yaml_file_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    assert "line 1: expected a list of cases" in refusal(tmp_path, "c.yaml", text)


def test_unicode_separators_do_not_break_lines_of_yaml(tmp_path: Path) -> None:
    one, two = read(tmp_path, "c.yaml", '- id: a\n  x: "b\u2028 c \x85d"\n  y: e\u2029f\n- id: b\n')
    assert one.case.model_extra == {"x": "b\u2028 c \x85d", "y": "e\u2029f"}
    assert two.position == "line 4"
