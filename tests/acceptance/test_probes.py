"""Checking the grader before money is spent: it must fail empty answers and pass the expected ones, without a key."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from eval_project import APPROVE, Project, read_lines, refused

NULL, ORACLE = "--hillclimb-null", "--hillclimb-oracle"
LANES = pytest.mark.parametrize(("option", "lane"), [(NULL, "null"), (ORACLE, "oracle")])

GRADER = """
import json, os
from pathlib import Path

ROOT = Path(__file__).parents[1]


def see(where):
    with open(ROOT / "seen.jsonl", "a") as file:
        file.write(json.dumps([where, sorted(os.environ)]) + "\\n")


see("import")


def pytest_hillclimb_run_case(case, ctx):
    (ROOT / "spend.log").touch()
    return {"output": "an answer that was paid for"}


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    see("grade")
    how = case.model_extra.get("how", "equal")
    if how == "equal":
        return {"pass": case.expected is not None and run.output == case.expected, "length": len(str(run.output))}
    if how == "ref":
        return {"pass": run.output != "" and ref == f"frozen {case.id}"}
    if how == "length":
        return {"length": len(run.output)}
    if how == "raise":
        raise ValueError("no grade for this")
    if how == "key":
        return os.environ["MODEL_API_KEY"] != ""
    if how == "judge":
        import anthropic

        anthropic.Anthropic().messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "?"}])
    return how == "lax"
"""

SOUND = [{"id": "blue", "expected": "blue"}, {"id": "red", "expected": "red"}]
LAX = {"id": "lax", "expected": "x", "how": "lax"}
STRICT = {"id": "strict", "expected": "x", "how": "strict"}
SILENT = {"id": "silent", "expected": "x", "how": "length"}
RAISES = {"id": "raises", "expected": "x", "how": "raise"}


@pytest.fixture
def checked(project: Project) -> Project:
    """A project whose harness is approved, and that has seen nothing yet."""
    project.write("evals/conftest.py", GRADER)
    return project


def ready(project: Project, *cases: dict[str, Any]) -> Project:
    project.cases(*cases)
    project.approved("--collect-only")
    (project.path / "seen.jsonl").unlink()
    return project


def flow(project: Project, lane: str) -> Path:
    return project.flow.with_name(f"flow.{lane}")


def seen(project: Project) -> list[tuple[str, set[str]]]:
    return [(where, set(names)) for where, names in read_lines(project.path / "seen.jsonl")]


def verdict(result: pytest.RunResult, lane: str) -> list[str]:
    """Return what the end of a session says of the grader."""
    return [line.removeprefix(lane).strip() for line in result.outlines if re.match(rf"{lane} {{2,}}\S", line)]


def environment() -> dict[str, str]:
    """Return the environment of this process, but for what the session that runs this test changes as it goes."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


def assert_no_app(project: Project) -> None:
    assert not (project.path / "spend.log").exists()


@pytest.mark.parametrize(
    ("option", "lane", "outputs", "says"),
    [
        (NULL, "null", {""}, "the grader fails the empty answer in all 2 executions with a verdict"),
        (ORACLE, "oracle", {"blue", "red"}, "the grader passes the expected answer in all 2 executions with a verdict"),
    ],
)
def test_sound_grader(checked: Project, option: str, lane: str, outputs: set[str], says: str) -> None:
    ready(checked, *SOUND)
    before = checked.files()
    result = checked.run(option)
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 2}
    assert verdict(result, lane) == [says]
    assert f"= hillclimb: baseline ({lane}) =" in result.stdout.str()
    assert f"hillclimb: {lane} check: the app is not called" in result.stdout.str()
    assert_no_app(checked)

    directory = flow(checked, lane) / "baseline"
    rows = checked.rows(flow=flow(checked, lane))
    assert sorted(row["prompt_id"] for row in rows) == ["blue", "red"]
    assert {row["passed"] for row in rows} == {lane == "oracle"}
    assert {row["meta"]["lane"] for row in rows} == {lane}
    traces = [json.loads((directory / f"traces/{name}_rep0.json").read_text()) for name in ("blue", "red")]
    assert {trace[-1]["content"] for trace in traces} == outputs
    assert json.loads((directory / "run.json").read_text())["lane"] == lane
    assert json.loads((directory / "summary.json").read_text())["label"] == f"baseline ({lane})"
    made = set(checked.files()) - set(before)
    assert {name for name in made if not name.startswith(f".claude/hillclimb/flow.{lane}/")} == {"seen.jsonl"}
    assert not (directory / "ref").exists(), "nothing is frozen"


def test_grader_that_passes_an_empty_answer(checked: Project) -> None:
    checked.ini(hillclimb_enabled="true", hillclimb_fail_on="error")
    ready(checked, *SOUND, LAX, SILENT)
    result = checked.run(NULL, "-rA")
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 3, "failed": 1}
    result.stdout.fnmatch_lines("FAILED evals/catalog.json::lax::rep0 - the grader passed an empty answer*")
    result.stdout.fnmatch_lines("graded     4  (2 failed as they must, 1 passed, 1 without a verdict)")
    assert verdict(result, "null") == [
        "the grader passed the empty answer in 1 of 3: lax rep0",
        "1 grade without a verdict: give a bool, a metric 'pass', or Grade.passed",
    ]


def test_grader_that_fails_an_expected_answer(checked: Project) -> None:
    checked.ini(hillclimb_enabled="true", hillclimb_fail_on="error")
    ready(checked, *SOUND, LAX, STRICT, RAISES)
    result = checked.run(ORACLE)
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 3, "failed": 1, "errors": 1}
    assert verdict(result, "oracle") == [
        "the grader failed the expected answer in 1 of 4: strict rep0",
        "1 execution could not be graded: raises rep0",
    ]


def test_grader_without_a_verdict_is_not_called_sound(checked: Project) -> None:
    ready(checked, SILENT, RAISES)
    result = checked.run(NULL)
    assert result.ret == 1
    assert verdict(result, "null") == [
        "nothing is known of the grader: no grade of the empty answer has a verdict, so the check fails",
        "1 grade without a verdict: give a bool, a metric 'pass', or Grade.passed",
        "1 execution could not be graded: raises rep0",
    ]
    assert [row["failure_class"] for row in checked.errors(flow=flow(checked, "null"))] == ["grader_error"]
    meta = checked.errors(flow=flow(checked, "null"))[0]["meta"]
    assert meta == {"lane": "null", "classification": "infrastructure_failure"}


@pytest.mark.parametrize("option", [NULL, ORACLE])
def test_check_that_showed_nothing_has_failed(checked: Project, option: str) -> None:
    checked.ini(hillclimb_enabled="true", hillclimb_fail_on="error")
    ready(checked, SILENT)
    result = checked.run(option)
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 1}, "it is no fault of a single execution"
    assert verdict(result, option.removeprefix("--hillclimb-"))[0].endswith("has a verdict, so the check fails")
    result.stdout.fnmatch_lines("graded     1  (1 without a verdict)")


def test_check_of_nothing_has_failed(checked: Project) -> None:
    ready(checked, {"id": "open"})
    result = checked.run(ORACLE)
    assert result.ret == 1
    assert result.parseoutcomes() == {"skipped": 1}


def test_judge_that_needs_a_key_does_not_stop_the_others(checked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "s3cret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "s3cret")
    ready(checked, {"id": "judged", "how": "judge"}, {"id": "keyed", "how": "key"}, *SOUND)
    result = checked.run(NULL, "--hillclimb-concurrency=1")
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 2, "errors": 2}
    errors = checked.errors(flow=flow(checked, "null"))
    assert {row["prompt_id"]: row["failure_class"] for row in errors} == {
        "judged": "authentication",
        "keyed": "grader_error",
    }
    assert "could not be graded: judged rep0, keyed rep0" in verdict(result, "null")[1]
    assert "; without " in result.stdout.str()
    assert "MODEL_API_KEY" in result.stdout.str(), "it is said what is missing"


CANDIDATES = """
slots:
  - id: main
    candidates:
      - {id: one, model: m-1, qualification: {required_env: [VENDOR_LOGIN]}, budget: {max_cost_usd: 1}}
      - {id: two, model: m-2, qualification: {required_env: [NEVER_SET]}}
"""
SECRET = ("MODEL_API_KEY", "gh_token", "VENDOR_LOGIN")


@pytest.mark.parametrize("option", [NULL, ORACLE])
def test_no_credential_is_in_the_process(checked: Project, option: str) -> None:
    checked.write("candidates.yaml", CANDIDATES)
    checked.write(
        "evals/conftest.py",
        f"{GRADER}\nimport pytest\n\n\n@pytest.fixture(scope='session', autouse=True)\ndef dotenv():\n"
        "    os.environ['LOADED_TOKEN'] = 's3cret'\n",
    )
    ready(checked, *SOUND)
    args = (APPROVE, option, "--hillclimb-candidates=candidates.yaml")
    done = checked.command(*args, env={**os.environ, **dict.fromkeys(SECRET, "s3cret"), "PLAIN": "kept"})
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout, "candidates that are not qualified are checked as well"
    assert [where for where, _ in seen(checked)] == ["import"] + ["grade"] * 4
    for _, names in seen(checked):
        assert "PLAIN" in names
        assert not names & {*SECRET, "LOADED_TOKEN"}
    assert "s3cret" not in done.stdout
    assert "MODEL_API_KEY, VENDOR_LOGIN" in re.sub("without .*?(?=MODEL)", "", done.stdout)


@pytest.mark.parametrize("status", [0, 4])
def test_credentials_are_back_after_the_session(checked: Project, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "s3cret")
    ready(checked, *SOUND)
    if status:
        checked.cases()
    before = environment()
    result = checked.approved(NULL)
    assert result.ret == status
    assert all("MODEL_API_KEY" not in names for _, names in seen(checked))
    assert environment() == before


def test_oracle_skips_what_has_no_expected_answer(checked: Project) -> None:
    ready(checked, *SOUND, {"id": "open"}, {"id": "null", "expected": None})
    result = checked.run(ORACLE, "-rs")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 2, "skipped": 2}
    result.stdout.fnmatch_lines("SKIPPED * open has no expected answer to try the grader with")
    assert verdict(result, "oracle") == [
        "the grader passes the expected answer in all 2 executions with a verdict",
    ]


@pytest.mark.parametrize("expected", [{"date": "1 May", "of": ["a"]}, ["a", 1], 42, 0, False, "", "naïve\u2028"])
def test_expected_answers_of_every_shape(checked: Project, expected: object) -> None:
    ready(checked, {"id": "a", "expected": expected})
    result = checked.run(ORACLE)
    assert result.ret == 0, result.stdout.str()
    assert verdict(result, "oracle") == ["the grader passes the expected answer in all 1 execution with a verdict"]


@pytest.mark.parametrize("word", ["def", "async def"])
def test_expected_answer_of_a_hook(checked: Project, word: str) -> None:
    hook = f"""
{word} pytest_hillclimb_expected_answer(case):
    if case.id == "broken":
        raise LookupError("no such date")
    return case.expected and case.expected["said"]
"""
    checked.write("evals/conftest.py", GRADER.replace("run.output == case.expected", "run.output == 'yes'") + hook)
    ready(
        checked,
        {"id": "good", "expected": {"said": "yes"}},
        {"id": "bad", "expected": {"said": "no"}},
        {"id": "none"},
        {"id": "broken", "expected": {"said": "yes"}},
    )
    result = checked.run(ORACLE)
    assert result.parseoutcomes() == {"passed": 1, "failed": 1, "skipped": 1, "errors": 1}
    assert verdict(result, "oracle") == [
        "the grader failed the expected answer in 1 of 2: bad rep0",
        "1 execution could not be graded: broken rep0",
    ]
    assert checked.errors(flow=flow(checked, "oracle"))[0]["error"] == "no such date"


def test_expectation_that_is_no_answer(checked: Project) -> None:
    cases = """
import re


def pytest_hillclimb_load_cases(config):
    return [{"id": "pattern", "expected": re.compile("a+")}]
"""
    checked.write("evals/conftest.py", GRADER + cases)
    checked.approved("--collect-only")
    result = checked.run(ORACLE)
    assert result.ret == 1
    [row] = checked.errors(flow=flow(checked, "oracle"))
    assert row["failure_class"] == "invalid_output"
    assert "pytest_hillclimb_expected_answer" in row["error"]


@LANES
def test_references_of_the_baseline_reach_the_grader(checked: Project, option: str, lane: str) -> None:
    ready(checked, {"id": "a", "how": "ref", "expected": "something"})
    checked.write(".claude/hillclimb/flow/baseline/ref/a", "frozen a")
    before = checked.files()
    result = checked.run(option, "--hillclimb-variant=v3")
    assert result.ret == 0
    assert "frozen no references" not in result.stdout.str()
    after = checked.files()
    assert {name: after[name] for name in before} == before
    assert [row["meta"]["lane"] for row in checked.rows("v3", flow(checked, lane))] == [lane]


def test_each_check_is_made_anew(checked: Project) -> None:
    ready(checked, *SOUND, LAX, RAISES)
    checked.run(NULL)
    first = [row["prompt_id"] for row in checked.rows(flow=flow(checked, "null"))]
    assert sorted(first) == ["blue", "lax", "red"]
    ready(checked, SOUND[0])
    result = checked.run(NULL)
    assert "0 recorded, 1 to run" in result.stdout.str()
    assert result.ret == 0
    assert [row["prompt_id"] for row in checked.rows(flow=flow(checked, "null"))] == ["blue"]
    assert checked.errors(flow=flow(checked, "null")) == []
    paid = checked.run()
    assert "0 recorded, 1 to run" in paid.stdout.str()
    assert [row["prompt_id"] for row in checked.rows()] == ["blue"]
    assert "lane" not in checked.rows()[0].get("meta", {})


@pytest.mark.parametrize("run_file", [None, "{}", '{"lane": "oracle"}', '{"lane": "main"}'])
def test_rows_of_anything_else_are_not_touched(checked: Project, run_file: str | None) -> None:
    ready(checked, *SOUND)
    directory = ".claude/hillclimb/flow.null/baseline"
    checked.write(f"{directory}/errors.jsonl", '{"prompt_id": "a"}\n')
    if run_file is not None:
        checked.write(f"{directory}/run.json", run_file)
    before = checked.files()
    told = refused(checked.run(NULL))
    assert told.startswith(f"{directory}/errors.jsonl holds rows of the lane ")
    after = checked.files()
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("more", [[], ["--hillclimb-plan"], ["--hillclimb-lane=chaos"]], ids=" ".join)
def test_nothing_else_is_added_to_a_check(checked: Project, more: list[str]) -> None:
    hooks = "def pytest_hillclimb_inject_fault(): ...\ndef pytest_hillclimb_check_invariant(): ...\n"
    checked.write("evals/conftest.py", GRADER + hooks)
    ready(checked, *SOUND)
    checked.run(NULL)
    directory = flow(checked, "null")
    if more and "chaos" in more[0]:
        directory = directory.rename(flow(checked, "null.chaos"))
    before = checked.files()
    told = refused(checked.approved(f"--hillclimb-flow={flow(checked, 'null')}", *more))
    assert "holds rows of the lane null, this run is of the lane " in told
    assert checked.files() == {**before, "seen.jsonl": checked.files()["seen.jsonl"]}
    assert_no_app(checked)


@pytest.mark.parametrize(
    ("args", "ini"),
    [([NULL, ORACLE], "main"), ([NULL, "--hillclimb-lane=chaos"], "main"), ([ORACLE], "chaos")],
)
def test_one_lane_at_a_time(checked: Project, args: list[str], ini: str) -> None:
    checked.ini(hillclimb_enabled="true", hillclimb_lane=ini)
    checked.cases(*SOUND)
    before = checked.files()
    told = refused(checked.approved(*args))
    assert all(option in told for option in (NULL, ORACLE, "--hillclimb-lane chaos"))
    assert checked.files() == before, "not even imported"


@LANES
def test_harness_gate_holds(checked: Project, option: str, lane: str) -> None:
    ready(checked, *SOUND)
    checked.write("evals/conftest.py", GRADER + "# changed\n")
    before = checked.files()
    assert APPROVE in refused(checked.run(option))
    assert checked.files() == before


def test_lanes_are_no_part_of_the_harness(checked: Project) -> None:
    checked.write(".claude/hillclimb/flow/_state.json", '{"harness_paths": [".claude", "evals"]}')
    ready(checked, *SOUND)
    assert checked.run(NULL).ret == 0
    assert checked.run(ORACLE).ret == 0
    assert checked.run(NULL).ret == 0


@LANES
def test_fresh_check_leaves_no_flow(checked: Project, option: str, lane: str) -> None:
    ready(checked, *SOUND)
    result = checked.run(option, "--hillclimb-fresh")
    assert result.ret == 0
    [where] = re.findall(r"rows go to (\S+)", result.stdout.str())
    assert f"flow.{lane}" in where
    assert [row["meta"]["lane"] for row in read_lines(Path(where))] == [lane] * 2
    assert not flow(checked, lane).exists()


@LANES
@pytest.mark.parametrize("more", ["--hillclimb-plan", "--collect-only"])
def test_what_only_looks_writes_nothing(checked: Project, option: str, lane: str, more: str) -> None:
    ready(checked, *SOUND)
    before = checked.files()
    result = checked.run(option, more)
    assert result.ret == 0
    assert [where for where, _ in seen(checked)] == ["import"]
    assert checked.files() == {**before, "seen.jsonl": checked.files()["seen.jsonl"]}


def test_check_needs_no_price_and_no_qualification(checked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VENDOR_LOGIN", raising=False)
    checked.write("candidates.yaml", CANDIDATES)
    ready(checked, *SOUND)
    args = ("--hillclimb-max-cost=0.01", "--hillclimb-require-qualified", "--hillclimb-candidates=candidates.yaml")
    assert "4 passed" in checked.approved(NULL, *args).stdout.str()
    rows = checked.rows(flow=flow(checked, "null"))
    assert sorted(row["prompt_id"] for row in rows) == ["blue.one", "blue.two", "red.one", "red.two"]
    assert {row["meta"]["lane"] for row in rows} == {"null"}
    told = refused(checked.run(*args))
    assert "VENDOR_LOGIN" in told


def test_reports_say_the_lane(checked: Project) -> None:
    ready(checked, *SOUND)
    checked.run(NULL, "--junitxml=report.xml")
    properties = ElementTree.parse(checked.path / "report.xml").iter("property")
    lanes = [each.get("value") for each in properties if each.get("name") == "hillclimb.lane"]
    assert lanes == ["null", "null"]
