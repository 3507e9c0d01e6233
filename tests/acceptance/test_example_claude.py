"""The example of Claude: its one command without a key, and its checks that need none."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from eval_project import Project, read_lines

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "examples/claude"
SERVER = "tests/claude/messages_server.py"
APP, JUDGE = "claude-haiku-4-5-20251001", "claude-sonnet-5-5"
FACTS = ["order-sent", "order-total", "inner-tube"]  # the cases that need no judge
CLAIMS = ["order-unknown", "collect-on-monday", "saturday", "order-without-number", "discount"]
MISSED = ["order-sent", "order-unknown"]
WINS = {"order-sent": 1, "order-unknown": 1, "collect-on-monday": 0}
RETRIED = "collect-on-monday"

pytestmark = pytest.mark.skipif(not (ROOT / EXAMPLE).is_dir(), reason="the example is not beside the tests")


@pytest.fixture
def example(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(project.path / "temporary"))  # where the SDK looks for credentials, too
    monkeypatch.setenv("COLUMNS", "200")
    shutil.rmtree(project.path / "evals")
    (project.path / "pytest.ini").unlink()
    ignore = shutil.ignore_patterns(".claude", "__pycache__", ".pytest_cache")
    shutil.copytree(ROOT / EXAMPLE, project.path / EXAMPLE, ignore=ignore)
    (project.path / SERVER).parent.mkdir(parents=True)
    shutil.copy(ROOT / SERVER, project.path / SERVER)
    return project


def offline(example: Project, *args: str) -> tuple[int, str]:
    """Run the command that the example's readme names, and return its status and what it printed."""
    command = [sys.executable, f"{EXAMPLE}/offline.py", *args]
    done = subprocess.run(command, cwd=example.path, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def plain(example: Project, *args: str) -> tuple[int, str]:
    """Run pytest on the example where there is no key and no stand-in."""
    done = example.run(EXAMPLE, *args)
    assert done.stderr.str() == ""
    return int(done.ret), done.stdout.str()


def rows(example: Project, variant: str, flow: str = "offline") -> dict[str, dict[str, Any]]:
    path = example.path / EXAMPLE / ".claude/hillclimb" / flow / variant / "results.jsonl"
    return {row["prompt_id"]: row for row in read_lines(path)}


def test_its_one_command_without_a_key(example: Project) -> None:
    status, shown = offline(example)
    assert status == 0
    assert "scored     8  (6 passed, 2 missed)" in shown
    assert re.findall(r"^missed +\S+catalog.yaml::(\S+)::rep0", shown, re.MULTILINE) == MISSED
    assert "2 of 3 claims hold: false 2: asks the customer to check the number: the reply lacks: check, number" in shown
    check_money(shown)
    baseline = rows(example, "baseline")
    check_rows(baseline)
    assert {row["grade"]["win"] for row in baseline.values()} == {0.5}
    assert {id_ for id_, row in baseline.items() if not row["passed"]} == set(MISSED)
    assert {id_ for id_, row in baseline.items() if "judge_model" in row} == set(CLAIMS)
    check_retry(baseline[RETRIED])
    check_transcript(example)

    status, shown = offline(example, "--hillclimb-variant", "v1")
    assert status == 0
    assert "scored     8  (8 passed, 0 missed)" in shown
    v1 = rows(example, "v1")
    check_rows(v1)
    assert {id_: row["grade"]["win"] for id_, row in v1.items() if row["grade"]["win"] != 0.5} == WINS
    same = [id_ for id_, row in v1.items() if row["explanation"]["win"] == "tie: the answer is equal to the reference"]
    assert set(same) == set(baseline) - set(WINS) - {"saturday"}  # which is a tie that the judge has given
    assert not any("judge_model" in v1[id_] for id_ in ("order-total", "inner-tube"))

    # What is recorded is not paid for again, so there is no need of a stand-in.
    status, shown = plain(example, f"--hillclimb-flow={EXAMPLE}/.claude/hillclimb/offline", "--hillclimb-variant=v1")
    assert status == 0
    assert "8 selected: 8 recorded, 0 to run" in shown
    assert "everything selected was recorded before, nothing was run" in shown


def check_rows(found: dict[str, dict[str, Any]]) -> None:
    assert sorted(found) == sorted(FACTS + CLAIMS)
    for row in found.values():
        assert (row["model"], row["stop_reason"], row["status"]) == (APP, "end_turn", "ok")
        assert all(row["usage"][key] > 0 for key in ("input_tokens", "output_tokens", "cache_creation_input_tokens"))
        assert (row["usage"]["cache_read_input_tokens"] > 0) == (row["tool_calls"] > 0)
        assert row["tool_calls"] == {RETRIED: 2, "order-without-number": 0, "discount": 0}.get(row["prompt_id"], 1)
        assert row.get("judge_model", JUDGE) == JUDGE
        assert ("judge_model" in row) == ("judge_usage" in row)


def check_retry(row: dict[str, Any]) -> None:
    """Check that the try which met an overloaded API is counted, and what was billed until then too."""
    assert row["meta"]["retries"] == 1
    (failed,) = row["meta"]["retry_usage"]
    assert failed["model"] == APP
    assert failed["cache_creation_input_tokens"] > 0
    assert failed["cache_read_input_tokens"] == 0


def check_money(shown: str) -> None:
    assert "retries    1 app, 0 judge" in shown
    cost = re.search(r"^cost +([0-9.]+) USD app, ([0-9.]+) USD judge$", shown, re.MULTILINE)
    whole = re.search(rf"^in all +([0-9.]+) USD since the variant began; most for {RETRIED} ", shown, re.MULTILINE)
    assert cost is not None
    assert whole is not None
    assert 0 < float(cost[1]) + float(cost[2]) == pytest.approx(float(whole[1]), abs=1.5e-4)


def check_transcript(example: Project) -> None:
    trace = example.path / EXAMPLE / f".claude/hillclimb/offline/baseline/traces/{RETRIED}_rep0.json"
    turns = json.loads(trace.read_text(encoding="utf-8"))
    assert [(turn["role"], turn.get("name")) for turn in turns] == [
        ("system", None),
        ("user", None),
        ("assistant", None),
        ("tool_call", "find_order"),
        ("tool_call", "opening_hours"),
        ("tool_result", "find_order"),
        ("tool_result", "opening_hours"),
        ("assistant", None),
    ]
    assert json.loads(turns[5]["content"])["collect_until"] == "21 June"
    assert turns[-1]["content"].startswith("We are closed on Mondays")


def test_its_checks_need_no_key(example: Project) -> None:
    status, shown = plain(example, "--hillclimb-null", "--hillclimb-approve-harness")
    assert status == 0
    assert "the grader fails the empty answer in all 8 executions" in shown
    status, shown = plain(example, "--hillclimb-oracle", "-rs")
    assert status == 0
    assert "the grader passes the expected answer in all 3 executions" in shown
    assert shown.count("only the judge can tell") == len(CLAIMS)
    assert rows(example, "baseline", "flow.oracle").keys() == set(FACTS)

    status, shown = plain(example)
    assert status == 4
    assert shown.count("set ANTHROPIC_API_KEY, or try this without one: python examples/claude/offline.py") == 1
    assert "authentication" not in shown
    assert not rows(example, "baseline", "flow")


def test_its_judge_is_not_fooled(example: Project) -> None:
    status, shown = offline(example, "-m", "judge", "-s")
    assert status == 0
    assert "judge self-test passed: 10 of 10 probes came out as they must, 2 repeats each" in shown
    assert f"judge: {JUDGE}; " in shown
    assert "1 passed, 8 deselected" in shown
