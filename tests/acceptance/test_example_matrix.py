"""The example of a matrix: its schedules, and the four classes of outcomes that its one command shows."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from eval_project import Project, read_lines
from matrix_files import GOLDEN

from pytest_hillclimb.catalog import read_catalog
from pytest_hillclimb.schedule.manifest import read_manifest
from pytest_hillclimb.schedule.matrix import matrix_plan

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/matrix"
FAILED = {
    "verification-policy.opencode-gpt-oss": [0],
    "governed-interaction.opencode-kimi": [1],
    "delegation-return.opencode-gpt-oss": [0],
    "restart-recovery.opencode-gpt-oss": [0],
}
LOST = "trace-lineage.opencode-kimi"
SKIPPED_CANDIDATE = "acpx-claude-sonnet"
CLASSES = {"completed": 24, "candidate_failure": 4, "infrastructure_failure": 1, "skipped": 11}

pytestmark = pytest.mark.skipif(not EXAMPLE.is_dir(), reason="the example is not beside the tests")


@pytest.fixture
def example(project: Project) -> Project:
    shutil.rmtree(project.path / "evals")
    (project.path / "pytest.ini").unlink()
    ignore = shutil.ignore_patterns(".claude", "__pycache__", ".pytest_cache")
    shutil.copytree(EXAMPLE, project.path / "examples/matrix", ignore=ignore)
    return project


def play(example: Project, *args: str, **environment: str) -> tuple[int, str]:
    """Run the example's command in a shell that has keys, and return its status and what it printed."""
    keys = {"ANTHROPIC_API_KEY": "a key of one's own", "OPENAI_API_KEY": "another key", "EXAMPLE_TOKEN": "a third one"}
    env = {**os.environ, **keys, "COLUMNS": "200", **environment}
    result = example.command("examples/matrix", *args, env=env)
    assert result.stderr == ""
    return result.returncode, result.stdout


def rows(example: Project, name: str) -> list[dict[str, Any]]:
    return read_lines(example.path / f"examples/matrix/.claude/hillclimb/flow/baseline/{name}.jsonl")


@pytest.mark.parametrize("rotation", range(7))
def test_the_executions_of_every_rotation(rotation: int) -> None:
    cases = [entry.case for entry in read_catalog(EXAMPLE / "evals/catalog.yaml", "catalog.yaml")]
    manifest = read_manifest(EXAMPLE / "evals/candidates.yaml", "candidates.yaml")
    plan = matrix_plan(cases, 1, manifest, schedule="balanced", rotation=rotation, seed="nightly-v1")
    planned: dict[str, list[str]] = {}
    for execution in plan:
        assert execution.candidate is not None
        planned.setdefault(f"{execution.case.id} {execution.candidate.id}", []).append(str(execution.execution_id))
    wanted = [line.split() for line in GOLDEN["rows"][str(rotation)]]
    assert list(planned.items()) == [(f"{c} {who}", [f"rwe-{id_}" for id_ in ids]) for c, who, *ids in wanted]
    assert len(plan) == 40


def test_its_plan_with_all_candidates(example: Project) -> None:
    status, shown = play(
        example,
        "--hillclimb-approve-harness",
        "--hillclimb-plan",
        "--hillclimb-rotation=7",
        ANTHROPIC_API_KEY="offline",
    )
    assert status == 0
    ids = [id_ for line in GOLDEN["rows"]["0"] for id_ in line.split()[2:]]
    assert re.findall(r"^  to run .* rwe-([0-9a-f]{16})$", shown, re.MULTILINE) == ids
    assert "worst case 47.10 USD, cost ceiling 12 USD" in shown
    assert "steering-causality never meets opencode-glm" in shown
    assert not rows(example, "results")


def test_its_one_command(example: Project) -> None:
    status, shown = play(
        example, "--hillclimb-approve-harness", "--hillclimb-rotation=0", f"--junitxml={example.path}/junit.xml"
    )
    assert status == 1
    assert "4 failed, 24 passed, 11 skipped, 1 error" in shown
    assert f"not qualified: {SKIPPED_CANDIDATE} needs ANTHROPIC_API_KEY" in shown
    check_results(rows(example, "results"))
    check_errors(rows(example, "errors"))
    check_junit(example.path / "junit.xml")
    check_environments(example)
    table = {
        line.split()[0]: line.split()[1:6] for line in shown.splitlines() if re.match(r"(acpx|codex|open)\S+ ", line)
    }
    assert table.pop(SKIPPED_CANDIDATE) == ["0", "0", "0", "11", "-"]
    assert {name: cells[:4] for name, cells in table.items()} == {
        "codex-luna": ["7", "0", "0", "0"],
        "opencode-kimi": ["9", "1", "1", "0"],
        "acpx-codex-sol": ["7", "0", "0", "0"],
        "opencode-gpt-oss": ["1", "3", "0", "0"],
    }
    charged = re.search(r"ceiling +([0-9.]+) of 12 USD charged", shown)
    assert charged is not None
    assert 0 < sum(float(cells[4]) for cells in table.values()) == pytest.approx(float(charged[1]), abs=1e-3)

    status, shown = play(example, "--hillclimb-rotation=0")
    assert status == 1
    assert "28 recorded, 11 skipped, 1 to run" in shown
    assert len(rows(example, "results")) == 28
    assert [row["prompt_id"] for row in rows(example, "errors")] == [LOST] * 2


def check_results(scored: list[dict[str, Any]]) -> None:
    by_id = {row["meta"]["execution_id"]: row for row in scored}
    assert len(by_id) == len(scored) == 28
    failed: dict[str, list[int]] = {}
    for row in scored:
        meta = row["meta"]
        assert meta["classification"] == ("completed" if row["passed"] else "candidate_failure")
        assert row["prompt_id"] == f"{meta['case_id']}.{meta['candidate_id']}"
        assert not any("cost" in key or "usd" in key for key in {*row, *meta})
        assert row["usage"]["input_tokens"] > 0
        if not row["passed"]:
            failed.setdefault(row["prompt_id"], []).append(row["rep"])
            assert (row["grade"]["pass"] == 1) == ("budget_exceeded" in meta)
    assert failed == FAILED
    over = [row for row in scored if "budget_exceeded" in row["meta"]]
    assert [(row["meta"]["case_id"], row["meta"]["budget_exceeded"]) for row in over] == [
        ("restart-recovery", ["max_total_tokens"])
    ]
    assert sum(over[0]["usage"].values()) > 64_000
    retried = [row for row in scored if row["meta"].get("retries")]
    assert [(row["prompt_id"], row["rep"], row["passed"]) for row in retried] == [
        ("rich-activity.acpx-codex-sol", 0, True)
    ]
    assert [attempt["code"] for attempt in retried[0]["meta"]["attempts"]] == ["agent_lost"]
    assert retried[0]["meta"]["retry_usage"][0]["input_tokens"] > 0


def check_errors(errors: list[dict[str, Any]]) -> None:
    (row,) = errors
    assert (row["prompt_id"], row["failure_class"], row["code"]) == (LOST, "infrastructure", "agent_lost")
    assert row["meta"]["classification"] == "infrastructure_failure"
    assert len(row["attempts"]) == 2
    assert row["usage"]["input_tokens"] > 0


def check_junit(path: Path) -> None:
    testcases = ElementTree.parse(path).getroot().findall(".//testcase")
    found = [
        (case.find("properties/property[@name='hillclimb.classification']"), [child.tag for child in case[1:]])
        for case in testcases
    ]
    assert Counter(prop.get("value") for prop, _ in found if prop is not None) == CLASSES
    tags = {
        "completed": [],
        "candidate_failure": ["failure"],
        "infrastructure_failure": ["error"],
        "skipped": ["skipped"],
    }
    assert all(prop is not None and children == tags[str(prop.get("value"))] for prop, children in found)


def check_environments(example: Project) -> None:
    """Check that each agent's process has seen the credentials of its candidate and no others."""
    traces = example.path / "examples/matrix/.claude/hillclimb/flow/baseline/traces"
    keys = {"codex-luna": "OPENAI_API_KEY", "acpx-codex-sol": "OPENAI_API_KEY"}
    for row in rows(example, "results"):
        trace = json.loads((traces / f"{row['prompt_id']}_rep{row['rep']}.json").read_text(encoding="utf-8"))
        sees = {turn["content"].partition("it sees ")[2] for turn in trace if turn["role"] == "system"} - {""}
        assert sees == {keys.get(row["meta"]["candidate_id"], "OPENROUTER_API_KEY")}


def swap(path: Path, old: str, new: str) -> None:
    """Change a line of the example's own code."""
    source = path.read_text(encoding="utf-8")
    assert source.count(old) == 1
    path.write_text(source.replace(old, new), encoding="utf-8")


def test_an_agent_that_only_says_what_it_should_has_done_passes_nothing(example: Project) -> None:
    agent = example.path / "examples/matrix/newsroom/agent.py"
    swap(agent, "todo = [call for call in script.calls if not call.startswith(lapse.skips)]", "todo = []")
    status, _ = play(example, "--hillclimb-approve-harness", "--hillclimb-rotation=0")
    assert status == 1
    assert {row["passed"] for row in rows(example, "results")} == {False}
    assert {row["grade"]["evidence"] < 1 for row in rows(example, "results")} == {True}


CHAOS = ("--hillclimb-lane=chaos", "--hillclimb-schedule=full", "--hillclimb-candidate=codex-luna")
PHASES = {  # of repetitions 0 to 4
    "chaos-restart": ["result", "result", "turn", "turn", "finalisation"],
    "chaos-duplicate-delivery": ["call", "call", "event", "event", "event"],
    "chaos-interaction-timeout": ["question", "approval", "question", "question", "approval"],
}


def chaos_rows(example: Project) -> dict[str, list[dict[str, Any]]]:
    path = example.path / "examples/matrix/.claude/hillclimb/flow.chaos/baseline/results.jsonl"
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(read_lines(path), key=lambda row: row["rep"]):
        found.setdefault(row["meta"]["case_id"], []).append(row)
    return found


def test_three_faults_strike_and_the_others_are_not_supported(example: Project) -> None:
    status, shown = play(example, "--hillclimb-approve-harness", *CHAOS, "--hillclimb-reps=5", "-rs")
    assert status == 0
    assert "15 passed, 25 skipped" in shown
    unsupported = re.findall(r"SKIPPED \[5\] .*: fault_unsupported: the harness does not support (\w+)", shown)
    assert len(unsupported) == 5
    found = chaos_rows(example)
    assert found.keys() == PHASES.keys()
    for case, phases in PHASES.items():
        told = [re.search(r"at phase (\w+) fired, evidence: \S", row["explanation"]["pass"]) for row in found[case]]
        assert [phase and phase[1] for phase in told] == phases
        assert all(row["passed"] for row in found[case])


def test_without_its_guards_no_scenario_holds(example: Project) -> None:
    newsroom = example.path / "examples/matrix/newsroom"
    swap(newsroom / "agent.py", "        if call in done:\n", "        if False:\n")
    swap(newsroom / "agent.py", '["id"] != id_:\n', '["id"] is None:\n')
    swap(newsroom / "desk.py", 'if said["id"] in self._replies:\n', "if False:\n")
    swap(newsroom / "faults.py", '"owner": "editor"', '"owner": ""')
    status, _ = play(example, "--hillclimb-approve-harness", *CHAOS, "--hillclimb-reps=5", "--tb=no")
    assert status == 1
    found = chaos_rows(example)
    assert {case: [row["passed"] for row in rows] for case, rows in found.items()} == dict.fromkeys(PHASES, [False] * 5)


def test_its_grader_fails_the_empty_answer_everywhere(example: Project) -> None:
    status, shown = play(example, "--hillclimb-approve-harness", "--hillclimb-rotation=0", "--hillclimb-null")
    assert status == 0
    assert "the grader fails the empty answer in all 40 executions" in shown
