"""Whole pytest sessions, in a process of their own, whose app talks to the server with the default client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from messages_server import MODEL, MessagesServer, Play, Request, answer, error

CONFTEST = """
from pytest_hillclimb import claude


async def pytest_hillclimb_run_case(case, ctx):
    return await claude.message(ctx, messages=case.prompt)


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return run.output == "Paris"
"""
UNUSED = """
import sys


def test_no_sdk_is_loaded():
    import pytest_hillclimb

    loaded = {name.partition(".")[0] for name in sys.modules}
    assert not loaded & {"anthropic", "httpx2", "httpcore2", "pydantic", "aiohttp"}
"""


class Session:
    """A project with an eval of ten cases, and the rows that a session of it leaves."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        pytester.makeini("[pytest]\nhillclimb_enabled = true\nhillclimb_paths = evals\n")
        evals = pytester.mkdir("evals")
        (evals / "conftest.py").write_text(CONFTEST)
        (evals / "catalog.json").write_text(json.dumps([{"id": f"c{n}", "prompt": f"prompt {n}"} for n in range(10)]))

    def run(self, *options: str) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess("--hillclimb-approve-harness", "-p", "no:cacheprovider", *options)

    def rows(self, name: str) -> list[dict[str, Any]]:
        path = Path(self.pytester.path, ".claude/hillclimb/flow/baseline", name)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def session(pytester: pytest.Pytester, messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch) -> Session:
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    return Session(pytester)


def test_a_session_scores_what_it_can(session: Session, messages_server: MessagesServer) -> None:
    def script(request: Request) -> Play:
        if request.prompt == "prompt 3":
            return error(400, "invalid_request_error", "prompt is too long: 209063 tokens > 200000 maximum")
        return answer("Lyon" if request.prompt == "prompt 4" else "Paris")

    messages_server.script = script
    result = session.run("--hillclimb-model", "claude-haiku-4-5")
    result.assert_outcomes(passed=8, failed=1, errors=1)
    assert result.stderr.str() == ""
    assert [(row["prompt_id"], row["failure_class"]) for row in session.rows("errors.jsonl")] == [
        ("c3", "context_length")
    ]
    rows = session.rows("results.jsonl")
    assert {(row["model"], row["usage"]["input_tokens"]) for row in rows} == {(MODEL, 12)}
    assert (len(rows), len(messages_server.requests)) == (9, 10)


def test_an_account_error_ends_the_run(session: Session, messages_server: MessagesServer) -> None:
    messages_server.play(error(400, "invalid_request_error", "Your credit balance is too low to access the API."))
    result = session.run("--hillclimb-model", "claude-haiku-4-5", "--hillclimb-concurrency", "1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(messages_server.requests) == 1
    assert session.rows("results.jsonl") == []
    assert len(session.rows("errors.jsonl")) == 1
    result.assert_outcomes(errors=1, skipped=9)


def test_the_sdk_is_not_loaded_where_nothing_asks_for_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(UNUSED)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
