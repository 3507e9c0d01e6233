"""A bad catalog or a bad load_cases hook: exit status 4, one clear line, and nothing written."""

from __future__ import annotations

import json

import pytest
from eval_project import HOOKS, Project, refused

BAD_CATALOGS = {
    "no id": ("catalog.yaml", "- id: a\n- prompt: hello\n", ["evals/catalog.yaml, line 2", "id"]),
    "null id": ("catalog.yaml", "- id: a\n- id: null\n", ["line 2", "id is null"]),
    "empty id": ("catalog.jsonl", '{"id": "a"}\n\n{"id": ""}\n', ["evals/catalog.jsonl, line 3", "id is empty"]),
    "blank id in CSV": ("catalog.csv", "id,prompt\na,x\n,y\n", ["evals/catalog.csv", "line 3", "id is empty"]),
    "list as id": ("catalog.json", '[{"id": ["a"]}]', ["evals/catalog.json, case 1", "a list"]),
    "twins": ("catalog.yaml", "- id: a\n- id: b\n- id: a\n", ["'a'", "line 1", "line 3"]),
    "case twins": ("catalog.yaml", "- id: Open\n- id: open\n", ["'Open'", "'open'", "line 1", "line 2"]),
    "twins on disk": ("catalog.json", '[{"id": "a.html"}, {"id": "a"}]', ["'a'", "'a.html'", "reference"]),
    "dot": ("catalog.yaml", "- id: .\n", ["line 1", "'.'"]),
    "dots": ("catalog.yaml", "- id: a\n- id: ..\n", ["line 2", "'..'"]),
    "text": ("catalog.yaml", "just words\n", ["evals/catalog.yaml", "list of cases"]),
    "mapping without cases": ("catalog.json", '{"case": []}', ["evals/catalog.json", "'cases'"]),
    "no cases": ("catalog.yaml", "cases: []\n", ["evals/catalog.yaml", "no cases"]),
    "empty file": ("catalog.json", "", ["evals/catalog.json", "no cases"]),
    "only comments": ("catalog.yaml", "# later\n", ["evals/catalog.yaml", "no cases"]),
    "a case that is a text": ("catalog.yaml", "- id: a\n- b\n", ["line 2", "mapping"]),
    "broken YAML": ("catalog.yaml", "- id: a\n  prompt: 'open\n", ["evals/catalog.yaml, line", "YAML"]),
    "tab in YAML": ("catalog.yaml", "- id: a\n\tprompt: x\n", ["evals/catalog.yaml, line 2", "YAML"]),
    "two documents": ("catalog.yaml", "- id: a\n---\n- id: b\n", ["evals/catalog.yaml"]),
    "python tag": ("catalog.yaml", "- id: a\n  prompt: !!python/object:os.system x\n", ["line 2", "tag"]),
    "doubled key": ("catalog.yaml", "- id: a\n  prompt: x\n  prompt: y\n", ["line 3", "prompt", "twice"]),
    "doubled key in JSON": ("catalog.json", '[{"id": "a", "id": "b"}]', ["case 1", "id", "twice"]),
    "broken JSON": ("catalog.json", '[\n{"id": "a"},\n]', ["evals/catalog.json, line", "JSON"]),
    "broken JSONL": ("catalog.jsonl", '{"id": "a"}\n{"id": "b"\n', ["evals/catalog.jsonl, line 2", "JSON"]),
    "list in JSONL": ("catalog.jsonl", '["a"]\n', ["evals/catalog.jsonl, line 1", "mapping"]),
    "NaN": ("catalog.json", '[{"id": "a", "meta": {"x": NaN}}]', ["evals/catalog.json", "case 1", "meta.x"]),
    "tags of a wrong kind": ("catalog.yaml", "- id: a\n  tags: {b: c}\n", ["line 2", "tags", "a mapping"]),
    "a nested tag": ("catalog.json", '[{"id": "a", "tags": [["b"]]}]', ["case 1", "tags[0]", "a list"]),
    "meta of a wrong kind": ("catalog.yaml", "- id: a\n  meta: 3\n", ["line 2", "meta", "a number"]),
    "attachments without ref": (
        "catalog.json",
        '[{"id": "a", "attachments": [{"kind": "image"}]}]',
        ["attachments[0]"],
    ),
    "no id column": ("catalog.csv", "name,prompt\na,x\n", ["evals/catalog.csv, line 1", "'id'"]),
    "semicolons": ("catalog.csv", "id;prompt\na;x\n", ["evals/catalog.csv, line 1", "'id'", "comma"]),
    "too many cells": ("catalog.csv", "id,prompt\na,b,c\n", ["evals/catalog.csv", "line 2", "3 cells for 2 columns"]),
    "an open quote": ("catalog.csv", 'id,prompt\na,"b\nc,d\n', ["evals/catalog.csv", "line"]),
    "meta that is no JSON": ("catalog.csv", "id,meta\na,{x\n", ["evals/catalog.csv", "line 2", "meta", "JSON"]),
    "two columns of a name": ("catalog.csv", "id,prompt,prompt\na,b,c\n", ["evals/catalog.csv, line 1", "'prompt'"]),
}


@pytest.mark.parametrize(("name", "text", "words"), BAD_CATALOGS.values(), ids=BAD_CATALOGS)
def test_a_bad_catalog(project: Project, name: str, text: str, words: list[str]) -> None:
    project.write(f"evals/{name}", text)
    before = project.files()
    told = refused(project.approved())
    assert [word for word in words if word not in told] == [], told
    assert project.files() == before
    assert not project.spent()


def test_a_catalog_that_is_not_utf8(project: Project) -> None:
    (project.path / "evals/catalog.csv").write_bytes(b"id,prompt\na,caf\xe9\n")
    told = refused(project.approved())
    assert "evals/catalog.csv, line 2" in told
    assert "UTF-8" in told
    assert not project.flow.exists()


def test_ids_are_compared_over_all_catalogs(project: Project) -> None:
    project.cases({"id": "a"})
    project.write("evals/sub/catalog.yaml", "- id: b\n- id: A\n")
    told = refused(project.approved())
    assert "evals/catalog.json, case 1" in told
    assert "evals/sub/catalog.yaml, line 2" in told
    assert not project.flow.exists()


def test_a_bad_catalog_refuses_the_whole_run_however_little_is_selected(project: Project) -> None:
    project.cases({"id": "good"})
    project.write("evals/sub/catalog.json", "[")
    project.write("tests/test_unit.py", "def test_unit():\n    pass\n")
    for args in (["-k", "good"], ["evals/catalog.json::good"], ["--collect-only"], ["--hillclimb-case", "good"]):
        assert "evals/sub/catalog.json" in refused(project.approved(*args))
    assert not project.spent()
    assert not project.flow.exists()


def test_a_bad_catalog_is_refused_in_a_process_of_its_own(project: Project) -> None:
    project.write("evals/catalog.yaml", "- id: a\n- id: a\n")
    ran = project.command("--hillclimb-approve-harness")
    assert ran.returncode == 4
    assert ran.stderr.splitlines()[0].startswith(
        "ERROR: hillclimb: the id 'a' is used twice: evals/catalog.yaml, line 1"
    )
    assert ran.stderr.count("\n") <= 2
    assert not project.flow.exists()


def test_text_of_a_catalog_cannot_forge_lines_of_the_message(project: Project) -> None:
    project.cases({"id": "a\u001b[2J\nERROR: all is well"}, {"id": "a\u001b[2J\nERROR: all is well"})
    told = refused(project.approved())
    assert "is used twice" in told
    assert "\x1b" not in told


BAD_HOOKS = {
    "raises": ("raise RuntimeError('no database')", ["RuntimeError", "no database"]),
    "raises late": ("yield {'id': 'a'}\n    raise KeyError('gone')", ["KeyError", "gone"]),
    "raises many lines": ("raise ValueError('one\\ntwo\\x1b[2J')", ["ValueError", "one"]),
    "SystemExit": ("raise SystemExit(0)", ["SystemExit"]),
    "skip": ("import pytest; pytest.skip('not today')", ["not today"]),
    "fail": ("import pytest; pytest.fail('no cases here')", ["no cases here"]),
    "text": ("return 'abc'", ["a text"]),
    "number": ("return 3", ["a number"]),
    "empty": ("return []", ["no cases"]),
    "a mapping": ("return {'a': {'id': 'a'}}", ["'cases'"]),
    "a list of texts": ("return [{'id': 'a'}, 'b']", ["case 2", "mapping"]),
    "no id": ("return [{'id': 'a'}, {'prompt': 'b'}]", ["case 2", "id"]),
    "an object in meta": ("return [{'id': 'a', 'meta': {'x': object()}}]", ["case 1", "meta.x"]),
    "twins": ("return [{'id': 'a'}, {'id': 'A'}]", ["'a'", "'A'", "case 1", "case 2"]),
}


@pytest.mark.parametrize(("body", "words"), BAD_HOOKS.values(), ids=BAD_HOOKS)
def test_a_bad_hook(project: Project, body: str, words: list[str]) -> None:
    project.write("evals/conftest.py", f"{HOOKS}\n\ndef pytest_hillclimb_load_cases(config):\n    {body}\n")
    before = project.files()
    told = refused(project.approved())
    assert [word for word in ["evals/conftest.py", *words] if word not in told] == [], told
    assert project.files() == before


def test_a_hook_that_gives_none_beside_a_catalog(project: Project) -> None:
    hook = "\n\ndef pytest_hillclimb_load_cases(config):\n    pass\n"
    project.write("evals/conftest.py", HOOKS + hook)
    project.cases({"id": "a"})
    assert "evals/conftest.py" in refused(project.approved())


@pytest.mark.parametrize(
    "hook",
    [
        "def pytest_hillclimb_load_cases():\n    return [{'id': 'a'}, {'id': 'b'}]\n",
        "def pytest_hillclimb_load_cases(config):\n    yield {'id': 'a'}\n    yield {'id': 'b'}\n",
        "async def pytest_hillclimb_load_cases(config):\n    return [{'id': 'a'}, {'id': 'b'}]\n",
        "def pytest_hillclimb_load_cases(config):\n    return {'cases': ({'id': i} for i in 'ab')}\n",
        "from pytest_hillclimb import Case\n\n\ndef pytest_hillclimb_load_cases(config):\n"
        "    return map(lambda i: Case(id=i), 'ab')\n",
    ],
    ids=["no argument", "generator", "async", "mapping", "map of cases"],
)
def test_good_hooks(project: Project, hook: str) -> None:
    project.write("evals/conftest.py", f"{HOOKS}\n\n{hook}")
    result = project.approved("-v")
    result.stdout.fnmatch_lines(["evals/conftest.py::a::rep0 PASSED*", "evals/conftest.py::b::rep0 PASSED*"])
    assert project.slots() == [("a", 0), ("b", 0)]


def test_a_case_of_a_hook_keeps_what_json_cannot_hold(project: Project) -> None:
    hook = "def pytest_hillclimb_load_cases(config):\n    return [{'id': 'a', 'input': config, 'says': ROOT.name}]\n"
    project.write("evals/conftest.py", f"{HOOKS}\n\n{hook}")
    project.approved().assert_outcomes(passed=1)
    assert project.rows()[0]["prompt"] == "a"


def test_a_bad_split_id_is_refused_and_nothing_is_approved(project: Project) -> None:
    project.cases({"id": "final response"})
    state = json.dumps({"train_ids": ["final response"]})
    project.write(".claude/hillclimb/flow/_state.json", state)
    before = project.files()
    told = refused(project.approved())
    assert "_state.json" in told
    assert "train_ids" in told
    assert "final_response-" in told
    assert project.files() == before


@pytest.mark.parametrize("state", ["{", "[]", '"x"', '{"harness_sha": 3}', '\ufeff{"a": 1}', '{"train_ids": "a"}'])
def test_a_broken_state_file_is_refused(project: Project, state: str) -> None:
    project.cases({"id": "a"})
    project.write(".claude/hillclimb/flow/_state.json", state)
    before = project.files()
    assert "_state.json" in refused(project.approved())
    assert project.files() == before


def test_a_split_id_without_a_case_is_only_a_note(project: Project) -> None:
    project.cases({"id": "a"})
    project.write(".claude/hillclimb/flow/_state.json", json.dumps({"val_ids": ["a", "gone"], "mine": [1]}))
    result = project.approved()
    assert result.ret == 0
    result.stdout.fnmatch_lines("hillclimb: note: *'gone'*")
    state = json.loads((project.flow / "_state.json").read_text())
    assert list(state) == ["val_ids", "mine", "harness_sha"]


def test_what_authors_type_is_kept(project: Project) -> None:
    project.write(
        "evals/catalog.yaml",
        "- id: no\n- id: 1_000\n- id: 2024-01-01\n- id: 010\n  tags: [yes, 1e3]\n- {id: 1.0, note: 12:30:00, n: 3}\n",
    )
    project.write("evals/catalog.csv", "\ufeffid,tags,prompt\r\n007,a; b,caf\u00e9\r\n")
    project.write("evals/catalog.jsonl", '\ufeff{"id": "sep", "prompt": "one\u2028two"}\r\n')
    result = project.approved()
    assert result.ret == 0
    rows = {row["prompt_id"]: row for row in project.rows()}
    assert set(rows) == {"no", "1_000", "2024-01-01", "010", "1.0", "007", "sep"}
    assert rows["010"]["tags"] == ["yes", "1e3"]
    assert rows["007"]["tags"] == ["a", "b"]
    assert rows["007"]["prompt"] == "caf\u00e9"
    assert rows["sep"]["prompt"] == "one\u2028two"
