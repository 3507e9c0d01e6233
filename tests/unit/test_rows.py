"""The two kinds of rows: key order of the public format, and the difference between None and absent."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.grade import Graded, read_grade
from pytest_hillclimb.model.ids import path_safe
from pytest_hillclimb.model.rows import errors_row, results_row
from pytest_hillclimb.model.run import Run

FULL_CASE = Case.model_validate(
    {"id": "c1", "prompt": "hi", "tags": ["t"], "attachments": [{"kind": "url", "ref": "x"}], "meta": {"k": 1}}
)
FULL_RUN = Run(
    output="o",
    transcript=[],
    tool_calls=2,
    web_searches=0,
    stop_reason="end_turn",
    usage={"input_tokens": 1},
    model="m",
)
JUDGED = read_grade(
    {"grade": {"pass": 1}, "explanation": "why", "judge_usage": {"output_tokens": 2}, "judge_model": "j"}
)


def results(
    case: Case = FULL_CASE,
    run: Run = FULL_RUN,
    graded: Graded = JUDGED,
    perf: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return results_row(case, (case.safe_id, 2), run, graded, latency_s=0.125, perf=perf or {}, meta=meta or {})


def errors(case: Case = FULL_CASE, billed: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return errors_row(
        case,
        (case.safe_id, 2),
        failure_class="timeout",
        error="exceeded",
        retries=0,
        judge_retries=1,
        billed=billed or {},
        latency_s=3.5,
        more=more,
    )


def test_a_full_results_row_has_the_keys_of_the_format_in_order() -> None:
    row = results(perf={"cost_usd": 0.25}, meta={"retries": 1})
    assert list(row.items()) == [
        ("prompt_id", "c1"),
        ("rep", 2),
        ("prompt", "hi"),
        ("tags", ["t"]),
        ("attachments", [{"kind": "url", "ref": "x"}]),
        ("meta", {"k": 1, "retries": 1}),
        ("model", "m"),
        ("usage", {"input_tokens": 1}),
        ("stop_reason", "end_turn"),
        ("status", "ok"),
        ("judge_model", "j"),
        ("judge_usage", {"output_tokens": 2}),
        ("latency_s", 0.125),
        ("tool_calls", 2),
        ("web_searches", 0),
        ("cost_usd", 0.25),
        ("grade", {"pass": 1}),
        ("explanation", {"pass": "why"}),
        ("passed", True),
    ]


def test_what_was_not_given_is_absent() -> None:
    row = results(Case(id="c1"), Run(), read_grade(0.5))
    assert list(row) == ["prompt_id", "rep", "prompt", "status", "latency_s", "grade"]
    assert row["prompt"] == "c1"


def test_what_was_given_as_none_is_null() -> None:
    run = Run(output=None, model=None, usage=None, stop_reason=None, judge_model=None, tool_calls=None)
    row = results(Case(id="c1"), run, read_grade(0.5))
    absent = ["prompt_id", "rep", "prompt", "model", "usage", "stop_reason", "status", "judge_model", "latency_s"]
    assert list(row) == [*absent, "tool_calls", "grade"]
    assert {row[key] for key in ("model", "usage", "stop_reason", "judge_model", "tool_calls")} == {None}


@pytest.mark.parametrize(
    ("run", "grade", "judge"),
    [
        ({"judge_model": "app"}, {}, {"judge_model": "app"}),
        ({"judge_model": "app"}, {"judge_model": "grader"}, {"judge_model": "grader"}),
        ({"judge_model": "app"}, {"judge_model": None}, {"judge_model": "app"}),
        ({"judge_usage": {"a_tokens": 1}}, {"judge_model": "j"}, {"judge_model": "j", "judge_usage": {"a_tokens": 1}}),
        ({}, {"judge_usage": None}, {"judge_usage": None}),
    ],
)
def test_the_judge_comes_from_the_grader_and_else_from_the_app(
    run: dict[str, Any], grade: dict[str, Any], judge: dict[str, Any]
) -> None:
    row = results(run=Run(**run), graded=read_grade({"grade": 1, **grade}))
    assert {key: value for key, value in row.items() if key.startswith("judge_")} == judge


def test_perf_may_override_all_but_what_names_and_grades_the_row() -> None:
    perf = {
        "latency_s": 9,
        "model": "mine",
        "prompt_id": "x",
        "rep": 7,
        "grade": 0,
        "explanation": "x",
        "passed": False,
    }
    row = results(perf={**perf, "extra": [1]})
    plain = results()
    assert row == {**plain, "latency_s": 9, "model": "mine", "extra": [1]}
    assert [key for key in row if key != "extra"] == list(plain)


def test_the_case_is_not_changed_by_its_row() -> None:
    case = Case(id="c1", meta={"k": 1})
    results(case, meta={"retries": 1})
    assert case.meta == {"k": 1}


def test_empty_tags_and_meta_that_were_given_are_kept() -> None:
    row = results(Case.model_validate({"id": "c1", "tags": [], "meta": {}, "attachments": []}), Run(), read_grade(1))
    assert (row["tags"], row["meta"], row["attachments"]) == ([], {}, [])


@pytest.mark.parametrize(
    ("fields", "prompt"),
    [
        ({"prompt": "p", "input": "i"}, "p"),
        ({"prompt": "", "input": "i"}, ""),
        ({"prompt": None, "input": "i"}, "i"),
        ({"input": {"q": "\u00e9"}}, '{"q":"\u00e9"}'),
        ({"prompt": [{"role": "user", "content": "hi"}]}, '[{"role":"user","content":"hi"}]'),
        ({}, "c1"),
        ({"input": object()}, "c1"),
    ],
)
def test_the_prompt_of_a_row_is_text(fields: dict[str, Any], prompt: str) -> None:
    assert results(Case(id="c1", **fields))["prompt"] == prompt


def test_an_errors_row_has_the_keys_of_the_format_in_order() -> None:
    billed = {"judge_usage": {"output_tokens": 1}, "usage": {"input_tokens": 1}, "model": "m", "judge_model": "j"}
    row = errors(Case(id="a/b", prompt="hi"), billed, code="lost", retry_usage=[{"input_tokens": 1}])
    assert list(row.items()) == [
        ("prompt_id", path_safe("a/b")),
        ("rep", 2),
        ("original_id", "a/b"),
        ("failure_class", "timeout"),
        ("error", "exceeded"),
        ("retries", 0),
        ("judge_retries", 1),
        ("model", "m"),
        ("usage", {"input_tokens": 1}),
        ("judge_model", "j"),
        ("judge_usage", {"output_tokens": 1}),
        ("latency_s", 3.5),
        ("code", "lost"),
        ("retry_usage", [{"input_tokens": 1}]),
    ]


def test_an_errors_row_without_anything_billed_still_counts_its_retries() -> None:
    assert list(errors()) == ["prompt_id", "rep", "failure_class", "error", "retries", "judge_retries", "latency_s"]
