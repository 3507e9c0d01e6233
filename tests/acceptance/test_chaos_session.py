"""The chaos lane as a user has it: eight faults injected into a harness, whose invariants must hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from chaos_harness import CONFTEST, IDS, KINDS
from eval_project import Project, refused

CHAOS = "--hillclimb-lane=chaos"


@pytest.fixture
def harness(project: Project) -> Project:
    project.write("evals/conftest.py", CONFTEST)
    project.cases({"id": "a"}, {"id": "b"})
    return project


def changed(project: Project, *pairs: tuple[str, str]) -> Project:
    """Change the conftest of a project."""
    text = CONFTEST
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    project.write("evals/conftest.py", text)
    return project


def flow(project: Project) -> Path:
    return project.flow.with_name("flow.chaos")


def rows(project: Project, variant: str = "baseline") -> dict[str, dict[str, Any]]:
    return {row["prompt_id"]: row for row in project.rows(variant, flow(project))}


def errors(project: Project) -> dict[str, dict[str, Any]]:
    return {row["prompt_id"]: row for row in project.errors(flow=flow(project))}


def main_files(project: Project) -> dict[str, bytes]:
    return {name: data for name, data in project.files().items() if name.startswith(".claude/hillclimb/flow/")}


def test_invariants_that_hold(harness: Project) -> None:
    harness.approved()
    before, graded = main_files(harness), harness.spent("grade")
    result = harness.run(CHAOS, "-v")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 8}
    passed = [line.split()[0] for line in result.outlines if " PASSED " in line]
    assert passed == [f"evals/conftest.py::{name}::rep0" for name in IDS]
    assert "hillclimb: baseline (chaos)" in result.stdout.str()
    assert main_files(harness) == before, "results are never touched"
    assert harness.spent("grade") == graded, "the grader of the cases is not called"

    assert sorted(rows(harness)) == sorted(IDS)
    for name, kind in zip(IDS, KINDS, strict=True):
        row = rows(harness)[name]
        assert row["meta"] == {"fault": kind, "lane": "chaos", "classification": "completed"}
        assert row["tags"] == ["chaos", kind]
        assert row["passed"] is True
        assert re.search(rf"fault {name}-[0-9a-f]{{8}}-1 at phase \w+ fired, evidence: \S", row["explanation"]["pass"])
        assert (flow(harness) / f"baseline/traces/{name}_rep0.json").exists()
    assert (
        "evidence: event-1 copy 0, event-1 copy 1" in rows(harness)["chaos-duplicate-delivery"]["explanation"]["pass"]
    )
    assert json.loads((flow(harness) / "baseline/run.json").read_text())["lane"] == "chaos"
    assert not (flow(harness) / "baseline/ref").exists()

    again = harness.run()
    assert "2 recorded, 0 to run" in again.stdout.str()
    assert main_files(harness).keys() == before.keys()


def test_catalog_is_no_place_of_the_lane(harness: Project) -> None:
    [catalog] = [path.name for path in (harness.path / "evals").glob("catalog.*")]
    told = refused(harness.approved(CHAOS, f"evals/{catalog}"))
    assert f"evals/{catalog} is a catalog, but the lane's items lie under evals/conftest.py" in told
    assert harness.spent() == []


def test_invariants_that_are_broken(harness: Project) -> None:
    harness.write("unguarded", " ".join(KINDS))
    result = harness.approved(CHAOS)
    assert result.ret == 1
    assert result.parseoutcomes() == {"failed": 8}
    for name, row in rows(harness).items():
        assert row["passed"] is False, name
        assert row["meta"]["classification"] == "candidate_failure"
        assert re.search(r"fired, evidence: .*; broken: .+; invariant: ", row["explanation"]["pass"]), name
    result.stdout.fnmatch_lines(["*chaos-wake-race rep0*", "*one winner*0", "*all input*1"])


@pytest.mark.parametrize(
    ("old", "code"),
    [("fault.fire(name)", "fault_not_fired"), ("fault.fire(name)\n", "fault_without_evidence")],
)
def test_fault_that_has_tested_nothing_is_no_pass(harness: Project, old: str, code: str) -> None:
    changed(harness, (old, "fault.fire('  ')\n" if code == "fault_without_evidence" else "pass"))
    result = harness.approved(CHAOS, "-k", "wake or restart")
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 1, "errors": 1, "deselected": 6}
    row = errors(harness)["chaos-wake-race"]
    assert (row["failure_class"], row["code"]) == ("infrastructure", code)
    assert row["usage"] == {"input_tokens": 3, "output_tokens": 1}
    assert row["meta"] == {"lane": "chaos", "classification": "infrastructure_failure"}
    result.stdout.fnmatch_lines(f"*infrastructure {code} 1*")
    assert harness.spent().count("chaos-wake-race rep0") == 1, "it is not tried again"


def test_faults_that_are_not_supported(harness: Project) -> None:
    changed(
        harness, ('return f"armed {fault.kind}"', 'return f"armed {fault.kind}" if "trace" in fault.kind else None')
    )
    result = harness.approved(CHAOS, "-rs")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 2, "skipped": 6}
    result.stdout.fnmatch_lines("SKIPPED * fault_unsupported: the harness does not support restart")
    assert sorted(rows(harness)) == ["chaos-trace-interruption", "chaos-trace-truncation"]
    assert len(harness.spent()) == 2, "what is not supported is not run"
    assert errors(harness) == {}


@pytest.mark.parametrize(
    "absent", [("inject_fault",), ("check_invariant",), ("run_case",), ("inject_fault", "check_invariant")]
)
def test_missing_hooks_are_named(harness: Project, absent: tuple[str, ...]) -> None:
    changed(harness, *((f"def pytest_hillclimb_{name}(", f"def other_{name}(") for name in absent))
    told = refused(harness.approved(CHAOS))
    for name in ("inject_fault", "check_invariant", "run_case", "grade_case"):
        assert (f"pytest_hillclimb_{name}(...)" in told) == (name in absent)
    assert "evals/conftest.py" in told
    assert not flow(harness).exists()


def test_grader_and_cases_are_not_needed(harness: Project) -> None:
    (harness.path / "evals/catalog.json").unlink()
    changed(harness, ("def pytest_hillclimb_grade_case(", "def grade_case("))
    assert harness.approved(CHAOS).parseoutcomes() == {"passed": 8}
    assert "no cases: evals has neither a catalog" in refused(harness.run())


@pytest.mark.parametrize(
    "words", [("inject_fault",), ("check_invariant",), ("run_case", "inject_fault"), ("run_case",)]
)
def test_hooks_that_are_coroutines(harness: Project, words: tuple[str, ...]) -> None:
    pairs = [(f"\ndef pytest_hillclimb_{word}(", f"\nasync def pytest_hillclimb_{word}(") for word in words]
    changed(harness, *pairs)
    result = harness.approved(CHAOS)
    assert result.parseoutcomes() == {"passed": 8}, result.stdout.str()
    assert len(rows(harness)) == 8


@pytest.mark.parametrize(
    ("old", "new", "failure_class", "words"),
    [
        ("return arm(fault, ctx)", "raise OSError('no such switch')", "error", "no such switch"),
        ("return run.output", "raise OSError('no record')", "grader_error", "no record"),
        ("return run.output", "return {'held': 1}", "grader_error", "checks.held: expected True or False"),
        ("return run.output", "return {}", "grader_error", "at least one check"),
        ("return run.output", "return None", "grader_error", "{check: bool}"),
        ("return strike(case, ctx)", "strike(case, ctx)", "invalid_output", "run_case"),
    ],
)
def test_hooks_that_fail(harness: Project, old: str, new: str, failure_class: str, words: str) -> None:
    changed(harness, (old, new))
    result = harness.approved(CHAOS, "-k", "stale")
    assert result.ret == 1
    assert result.parseoutcomes() == {"errors": 1, "deselected": 7}
    row = errors(harness)["chaos-stale-checkpoint"]
    assert row["failure_class"] == failure_class
    assert words in row["error"]


def test_harness_that_waits_for_ever_is_a_timeout(harness: Project) -> None:
    changed(harness, ("min(0.02, fault.remaining() / 2)", "60"))
    result = harness.approved(CHAOS, "-k", "interaction", "--hillclimb-timeout=0.2")
    assert result.ret == 1
    assert errors(harness)["chaos-interaction-timeout"]["failure_class"] == "timeout"


@pytest.mark.parametrize(
    ("args", "count"),
    [
        (["-k", "restart"], 1),
        (["-k", "trace_truncation or wake"], 2),
        (["-k", "chaos"], 8),
        (["--hillclimb-case=chaos-restart"], 1),
        (["evals/conftest.py::chaos-restart"], 1),
        (["evals/conftest.py::chaos-wake-race::rep0"], 1),
        (["evals"], 8),
        (["--hillclimb-limit=3"], 3),
    ],
)
def test_selection(harness: Project, args: list[str], count: int) -> None:
    harness.approved("--collect-only")
    result = harness.run(CHAOS, *args, "--collect-only", "-q")
    assert result.ret == 0
    assert sum("TrialItem" in line or "::rep0" in line for line in result.outlines) == count
    assert not flow(harness).exists()


def test_selection_that_is_none(harness: Project) -> None:
    harness.approved("--collect-only")
    assert "chaos-restart" in refused(harness.run(CHAOS, "--hillclimb-case=restart"))
    assert harness.run(CHAOS, "-k", "final-response").ret == 5
    assert harness.run(CHAOS, "evals/catalog.json").ret == 4


def test_resume(harness: Project) -> None:
    harness.write("unguarded", "restart")
    changed(harness, ('fault.fire("revision 3")', 'OFF and fault.fire("revision 3")'))
    harness.approved("--collect-only")
    assert harness.run(CHAOS, "-k", "restart or delivery").ret == 1
    result = harness.run(CHAOS)
    assert "2 recorded, 6 to run" in result.stdout.str()
    assert result.parseoutcomes() == {"passed": 7, "failed": 1}
    (harness.path / "unguarded").unlink()
    result = harness.run(CHAOS)
    assert "8 recorded, 0 to run" in result.stdout.str()
    assert result.ret == 1
    result.stdout.fnmatch_lines("FAILED evals/conftest.py::chaos-restart::rep0 - recorded: *")
    assert len(harness.spent()) == 8
    fresh = harness.run(CHAOS, "--hillclimb-fresh")
    assert fresh.parseoutcomes() == {"passed": 7, "errors": 1}
    assert len(rows(harness)) == 8


def test_what_could_not_be_measured_is_run_again(harness: Project) -> None:
    changed(harness, ('fault.fire("revision 3")', '(ROOT / "mended").exists() and fault.fire("revision 3")'))
    assert harness.approved(CHAOS, "-k", "stale").ret == 1
    harness.write("mended", "")
    assert harness.run(CHAOS, "-k", "stale").ret == 0
    assert rows(harness)["chaos-stale-checkpoint"]["passed"] is True


def test_repetitions_and_variants_have_faults_of_their_own(harness: Project) -> None:
    result = harness.approved(CHAOS, "--hillclimb-reps=3", "--hillclimb-variant=v2", "-k", "delivery")
    assert result.parseoutcomes() == {"passed": 3, "deselected": 21}
    assert "frozen no references" not in result.stdout.str()
    made = harness.rows("v2", flow(harness))
    faults = [re.findall(r"fault (\S+) at", row["explanation"]["pass"])[0] for row in made]
    assert sorted(row["rep"] for row in made) == [0, 1, 2]
    assert len(set(faults)) == 3
    again = harness.run(CHAOS, "--hillclimb-fresh", "--hillclimb-variant=v2", "-k", "delivery", "-rA")
    [where] = re.findall(r"rows go to (\S+)", again.stdout.str())
    first = json.loads(Path(where).read_text().splitlines()[0])
    assert re.findall(r"fault (\S+) at", first["explanation"]["pass"])[0] in faults, "a fault can be had again"


CANDIDATES = """
schedule: {candidates_per_case: 1, pair_offset: 1, repeats: {a: 2}}
slots:
  - id: main
    candidates:
      - {id: one, model: m-1, qualification: {required_env: [NEVER_SET]}}
      - {id: two, model: m-2}
  - id: side
    candidates:
      - {id: three, model: m-3}
"""


@pytest.mark.parametrize("schedule", [[], ["--hillclimb-schedule=balanced", "--hillclimb-rotation=0"]], ids=" ".join)
def test_with_candidates(harness: Project, schedule: list[str]) -> None:
    harness.write("candidates.yaml", CANDIDATES)
    changed(harness, ('note("run", case, ctx)', 'note(f"run {ctx.candidate.id}", case, ctx)'))
    args = (CHAOS, "--hillclimb-candidates=candidates.yaml", *schedule)
    plan = harness.approved(*args, "--hillclimb-plan")
    assert "yes  every case meets every candidate" in plan.stdout.str()
    result = harness.run(*args, "-rs")
    assert result.ret == 0
    active = ["three"] if schedule else ["two", "three"]
    assert result.parseoutcomes() == {"passed": 8 * len(active), "skipped": 8}
    result.stdout.fnmatch_lines("SKIPPED * not qualified: one needs NEVER_SET in the environment")
    assert sorted(rows(harness)) == sorted(f"{name}.{candidate}" for name in IDS for candidate in active)
    meta = rows(harness)["chaos-restart.three"]["meta"]
    assert {"case_id": "chaos-restart", "candidate_id": "three", "lane": "chaos"}.items() <= meta.items()


def test_lane_of_the_ini_file(harness: Project) -> None:
    harness.ini(hillclimb_enabled="true", hillclimb_lane="chaos")
    assert harness.approved("-k", "stale").parseoutcomes() == {"passed": 1, "deselected": 7}
    assert harness.run("--hillclimb-lane=main").parseoutcomes() == {"passed": 2}


def test_stop_of_a_run(harness: Project) -> None:
    harness.write("unguarded", "duplicate_delivery")
    result = harness.approved(CHAOS, "-x", "--hillclimb-concurrency=1")
    assert result.ret in (1, 2)
    assert len(rows(harness)) <= 3
