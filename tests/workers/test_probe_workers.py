"""Checks of a grader among workers: what has shown nothing, and credentials that are stored on disk."""

from __future__ import annotations

from worker_project import NewWorkerProject, cases, summary

GRADER = """
import os
import anthropic

CLIENT = anthropic.Anthropic(base_url="http://127.0.0.1:9", max_retries=0)

def pytest_hillclimb_grade_case(case, run, ref, ctx):
    assert "ANTHROPIC_CUSTOM_HEADERS" not in os.environ
    try:
        CLIENT.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "?"}])
    except anthropic.APIConnectionError:
        return True  # a call was sent
    except anthropic.AnthropicError:
        return {"length": 0}
"""


def test_stored_credentials_are_out_of_sight_and_no_verdict_is_a_failure(new_project: NewWorkerProject) -> None:
    project = new_project(GRADER)
    project.write_cases(*cases(2))
    home = project.root / "home"
    for kind, text in (
        ("configs", '{"authentication": {"type": "user_oauth"}}'),
        ("credentials", '{"type": "oauth_token", "access_token": "stored-token"}'),
    ):
        file = home / ".config/anthropic" / kind / "default.json"
        file.parent.mkdir(parents=True)
        file.write_text(text)
        file.chmod(0o600)
    done = project.run("-n", "2", "--hillclimb-null", HOME=str(home), ANTHROPIC_CUSTOM_HEADERS="x-api-key: k")
    assert done.status == 1, done.text
    assert summary(done) == {"passed": 2}
    assert any("nothing is known of the grader" in line for line in done.lines)
    assert "graded     2  (2 without a verdict)" in done.lines
