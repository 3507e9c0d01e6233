"""The trace of a case cannot be kept, or not whole: its row and its verdict are what they would have been."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chaos_project import ChaosProject, NewChaosProject, broken, fault, table, warnings
from crash_project import keys

from pytest_hillclimb.chaos.fault import Fault

OPTIONS = ("--hillclimb-fail-on=error", "--hillclimb-concurrency=1")
CASES = [(f"case-{n}", 0) for n in range(8)]

EVAL = """
def pytest_hillclimb_load_cases(config):
    return [{"id": f"case-{n}"} for n in range(8)]


TURNS = [{"role": "assistant", "content": f"turn {n} " + "x" * 200} for n in range(50)]


def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    if case.id != "case-0":
        return answer(case, **({"output": "x"} if case.id == "case-7" else {}))
    if os.environ.get("SINK") == "vanished":
        shutil.rmtree(ctx.flow / ctx.variant / "traces")
        show("the directory of traces is gone")
    if os.environ.get("SINK") == "unwritable":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
        show("no file may grow over 8 KiB")
    return answer(case, transcript=TURNS)
"""


def interrupted(project: ChaosProject, given: Fault, *off: str) -> dict[str, bool]:
    """Take the place for traces away in the way that the phase names."""
    control = project.run("--hillclimb-variant=v1", *OPTIONS)
    faults = ["faults/no_space_for_traces"] if given.phase == "no_space" else []
    done = project.run(*OPTIONS, *project.plugins(*faults, *off), SINK=given.phase)
    for line in project.evidence:
        given.fire(line)
    verdicts = [{row["prompt_id"]: row["passed"] for row in project.rows(name)} for name in ("baseline", "v1")]
    marked = [row["prompt_id"] for row in project.rows() if "trace_error" in row.get("meta", {})]
    return {
        "same exit status": done.status == control.status,
        "same verdicts": verdicts[0] == verdicts[1],
        "same counts, means and spend": table(done) == table(control),
        "no failure is recorded": project.errors() == [],
        "the row says what is missing": marked == ["case-0"],
        "one warning, which names the case": [line.split()[1] for line in warnings(done)] == ["case-0"],
        "no half trace stays": not (project.flow / "baseline/traces/case-0_rep0.json").exists(),
    }


@pytest.mark.parametrize("phase", ["no_space", "unwritable", "vanished"])
def test_interruption(new_project: NewChaosProject, phase: str) -> None:
    given = fault("chaos-trace-interruption", phase)
    assert broken(given, interrupted(new_project(EVAL), given)) == set()


def test_interruption_that_costs_the_row(new_project: NewChaosProject) -> None:
    given = fault("chaos-trace-interruption", "no_space")
    assert broken(given, interrupted(new_project(EVAL), given, "guards_off/traces_cost_rows")) >= {
        "same exit status",
        "same verdicts",
        "the row says what is missing",
        "one warning, which names the case",
    }


CAP = 1024
CAPPED = f"--override-ini=hillclimb_max_trace_bytes={CAP}"


def truncated(project: ChaosProject, given: Fault, *off: str, **env: Any) -> dict[str, bool]:
    """Let a trace be ten times larger than its cap, and slow to write."""
    control = project.run("--hillclimb-variant=v1", *OPTIONS)
    project.forget_calls()
    done = project.run(*OPTIONS, CAPPED, *project.plugins("faults/slow_sink", *off), **env)
    for line in project.evidence:
        given.fire(line)
    verdicts = [{row["prompt_id"]: row["passed"] for row in project.rows(name)} for name in ("baseline", "v1")]
    kept, whole = ((project.flow / name / "traces/case-0_rep0.json").read_bytes() for name in ("baseline", "v1"))
    turns = json.loads(whole)
    said = {row["prompt_id"]: row.get("meta", {}).get("trace_truncated") for row in project.rows()}
    expected = {"kept_turns": _number(kept), "turns": len(turns), "kept_bytes": len(kept), "bytes": len(whole)}
    assert len(whole) >= 10 * CAP
    return {
        "same exit status": done.status == control.status,
        "same verdicts": verdicts[0] == verdicts[1] and keys(project.rows()) == CASES,
        "same counts, means and spend": table(done) == table(control),
        "what is kept fits the cap": len(kept) <= CAP,
        "what is kept is whole turns": 0 < _number(kept) < len(turns) and json.loads(kept) == turns[: _number(kept)],
        "the row says what is missing": said == {name: expected if name == "case-0" else None for name, _ in CASES},
        "no call waits for the trace": project.evidence == ["case-0_rep0.json was written after 8 calls"],
    }


def _number(trace: bytes) -> int:
    """Return how many turns a trace holds, 0 for one that cannot be read."""
    try:
        return len(json.loads(trace))
    except ValueError:
        return 0


def test_truncation(new_project: NewChaosProject) -> None:
    given = fault("chaos-trace-truncation")
    assert broken(given, truncated(new_project(EVAL), given)) == set()


@pytest.mark.parametrize(
    ("off", "names"),
    [
        ("no_cap", {"what is kept fits the cap", "what is kept is whole turns", "the row says what is missing"}),
        ("cuts_bytes", {"what is kept is whole turns", "the row says what is missing"}),
    ],
)
def test_truncation_without_cap_or_care(new_project: NewChaosProject, off: str, names: set[str]) -> None:
    given = fault("chaos-trace-truncation")
    assert broken(given, truncated(new_project(EVAL), given, f"guards_off/{off}")) == names


def test_truncation_that_holds_up_the_run(new_project: NewChaosProject) -> None:
    given = fault("chaos-trace-truncation")
    checks = truncated(new_project(EVAL), given, "guards_off/traces_in_the_lane", SINK_PATIENCE_S="0.5")
    assert broken(given, checks) == {"no call waits for the trace"}
