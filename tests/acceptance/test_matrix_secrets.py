"""No secret is stored or shown, whoever told it: rows, traces, references, reports, JUnit, logs, refusals, warnings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from eval_project import Project, refused, reports
from matrix_project import candidate, counts
from telling_app import APP, ENV_NAME, ENV_VALUE, PATTERN, SECRETS, cases, leaks

REDACTED = "[REDACTED] [REDACTED] [REDACTED] [REDACTED]"


@pytest.fixture
def telling(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv(ENV_NAME, ENV_VALUE)
    project.write("evals/conftest.py", APP)
    project.ini(hillclimb_enabled="true", hillclimb_redact=PATTERN)
    project.cases(*cases())
    slots = [{"id": "s", "candidates": [candidate("luna"), candidate("kimi")]}]
    project.write("candidates.json", json.dumps({"slots": slots}))
    return project


def assert_nothing_leaks(project: Project, result: Any) -> None:
    assert leaks([result.stdout.str(), result.stderr.str()], project.flow, project.path / "left") == []


@pytest.mark.parametrize("matrix", [True, False])
def test_nothing_secret_is_left_of_a_session(telling: Project, matrix: bool) -> None:
    left = telling.path / "left"
    left.mkdir()
    options = [f"--junitxml={left}/junit.xml", "-ojunit_logging=all", "-olog_cli=true", f"-olog_file={left}/log.txt"]
    chosen = ["--hillclimb-candidates=candidates.json", "--hillclimb-rotation=0"] if matrix else []
    result = telling.approved("-rA", "-vv", *options, *chosen)
    assert counts(result).items() >= {"passed": 1, "failed": 1, "errors": 4, "skipped": 2}.items()
    assert_nothing_leaks(telling, result)
    text = result.stdout.str()
    for words in (
        "stdout: ",
        "stderr: ",
        "log: ",
        "thread: ",
        "warning: ",
        "because of ",
        "skipped: ",
        "the fixture: ",
    ):
        assert f"{words}{REDACTED}" in text
    for name in ("junit.xml", "log.txt"):
        assert REDACTED in (left / name).read_text()
    files = [path.name for path in telling.flow.rglob("*") if path.is_file() and REDACTED in path.read_text()]
    who = "passes.luna" if matrix else "passes"
    assert {"results.jsonl", "errors.jsonl", f"{who}_rep0.json", who, "page.txt"} <= set(files)
    assert {row["explanation"]["score"] for row in telling.rows()} == {f"because of {REDACTED}"}


def test_what_was_recorded_is_shown_without_secrets_again(telling: Project) -> None:
    telling.approved("-k", "misses")
    result = telling.run("-k", "misses", "-vv")
    assert counts(result)["failed"] == 1
    assert "1 recorded" in result.stdout.str()
    assert_nothing_leaks(telling, result)


def test_rows_of_another_tool_are_shown_without_secrets(telling: Project) -> None:
    row = {"prompt_id": "misses", "prompt": SECRETS, "grade": {"pass": 0}, "explanation": {"pass": SECRETS}}
    telling.write(".claude/hillclimb/flow/baseline/results.jsonl", json.dumps(row) + "\n")
    result = telling.approved("-k", "misses")
    assert counts(result)["failed"] == 1
    assert leaks([result.stdout.str()]) == []
    gist = reports(result)["misses::rep0"].longrepr.reprcrash.message
    assert gist == f"recorded: grade did not pass: pass 0: {REDACTED}"


def test_the_end_of_a_session_that_the_app_asks_for_tells_no_secret(telling: Project) -> None:
    telling.cases(*cases("exits"))
    result = telling.approved()
    assert f"Exit: the end: {REDACTED}" in result.stdout.str() + result.stderr.str()
    assert_nothing_leaks(telling, result)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--hillclimb-case={}"],
        ["--hillclimb-reps={}"],
        ["--hillclimb-variant={}"],
        ["--hillclimb-candidates=candidates.json", "--hillclimb-candidate={}"],
        ["--hillclimb-candidates={}"],
    ],
)
def test_refusals_tell_no_secret(telling: Project, arguments: list[str]) -> None:
    for secret in SECRETS.replace("er ", "er_").split(" "):
        told = refused(telling.approved(*(each.format(secret.replace("er_", "er ")) for each in arguments)))
        assert leaks([told]) == []


def test_a_hook_that_raises_while_loading_tells_no_secret(telling: Project) -> None:
    conftest = telling.path / "evals/conftest.py"
    conftest.write_text(conftest.read_text() + "\n\ndef pytest_hillclimb_load_cases():\n    raise RuntimeError(TOLD)\n")
    told = refused(telling.approved())
    assert f"raised RuntimeError: {REDACTED}" in told
    assert leaks([told]) == []


def test_run_json_and_the_header_of_reports_tell_no_secret(telling: Project) -> None:
    key = SECRETS.split()[0]
    asked = [f"--hillclimb-model={key}", "-k", "passes"]
    result = telling.approved(*asked)
    assert result.ret == 0
    assert_nothing_leaks(telling, result)
    assert json.loads((telling.flow / "baseline/run.json").read_text())["model"] == "[REDACTED]"
    assert counts(telling.run(*asked))["passed"] == 1, "it is still the same model"
    assert "--hillclimb-model=other" not in refused(telling.run("--hillclimb-model=other"))


def test_a_seed_is_no_secret_but_is_not_shown_if_it_looks_like_one(telling: Project) -> None:
    chosen = ["--hillclimb-candidates=candidates.json", f"--hillclimb-seed={SECRETS}", "-k", "passes and luna"]
    result = telling.approved(*chosen)
    assert result.ret == 0
    assert_nothing_leaks(telling, result)


def test_a_pattern_that_cannot_be_used_is_refused(telling: Project) -> None:
    telling.ini(hillclimb_enabled="true", hillclimb_redact="(")
    assert "hillclimb_redact: '(' is no regular expression" in refused(telling.approved())
