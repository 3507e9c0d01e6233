"""Candidates, qualification, a ceiling and secrets under pytest-xdist: as in one process, with shares for the ceiling.

A token costs one US dollar.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import Any

from telling_app import APP as TELLING
from telling_app import ENV_NAME, ENV_VALUE, PATTERN, leaks
from telling_app import cases as telling_cases
from worker_project import NewWorkerProject, WorkerProject, assert_orderly, case, cases, side_by_side, summary

HOOKS = """
from pytest_hillclimb import InfrastructureError


def does(case, ctx):
    candidate = ctx.candidate.id if ctx.candidate else ""
    return {**case.model_extra, **case.model_extra.get(candidate, {})}.get


def pytest_hillclimb_run_case(case, ctx):
    do = does(case, ctx)
    who = f" {ctx.candidate.id}" if ctx.candidate else ""
    os.write(SPEND, f"{case.id}{who}\\t{ctx.rep}\\t{os.getpid()}\\n".encode())
    time.sleep(do("seconds", 0))
    die(do("do"))
    if do("infra"):
        error = InfrastructureError("sandbox_lost", True, "the sandbox is gone")
        error.usage, error.model = {"input_tokens": 2, "output_tokens": 0}, ctx.model
        raise error
    if do("raises"):
        raise RuntimeError(do("raises"))
    said = f"{who} on {case.id}"
    usage = {"input_tokens": do("cost", 1), "output_tokens": 0}
    return {"output": said, "transcript": [{"role": "assistant", "content": said}], "model": ctx.model, "usage": usage}


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return {"grade": {"pass": does(case, ctx)("grade", 1)}, "explanation": f"against {ref}"}
"""

PRICES = "hillclimb_prices =\n" + "".join(f"    {model}-1 in=1000000 out=0\n" for model in ("luna", "kimi", "glm"))


def candidate(id_: str, env: str | None = None, **budget: Any) -> dict[str, Any]:
    qualification = {"required_env": [env] if env else []}
    return {"id": id_, "model": f"{id_}-1", "qualification": qualification, "budget": budget}


def matrix(new_project: NewWorkerProject, *candidates: dict[str, Any], hooks: str = HOOKS) -> WorkerProject:
    """Return a project with prices, whose candidates fill a slot each."""
    project = new_project(hooks)
    ini = project.root / "pytest.ini"
    ini.write_text(ini.read_text() + PRICES)
    if candidates:
        slots = [{"id": f"slot-{each['id']}", "candidates": [each]} for each in candidates]
        (project.root / "candidates.json").write_text(json.dumps({"slots": slots}))
        ini.write_text(ini.read_text() + "hillclimb_candidates = candidates.json\n")
    return project


def spent(project: WorkerProject) -> int:
    """Return what the calls of the app have cost, at one dollar each."""
    return len(project.calls())


# --- as in one process ------------------------------------------------------------------------------------------------


def test_a_matrix_is_what_it_is_in_one_process(new_project: NewWorkerProject) -> None:
    given = [
        case("well", tags=["t"]),
        case("missed", luna={"grade": 0}),
        case("dear", luna={"cost": 9}, kimi={"infra": True}),
        case("broken", kimi={"raises": "kaput"}),
        case("a/b"),
    ]
    luna, kimi = candidate("luna", max_cost_usd=5), candidate("kimi", max_attempts=2)
    found = []
    for options in ((), ("-n2",)):
        project = matrix(new_project, luna, kimi, candidate("glm", "GLM_KEY"))
        project.write_cases(*given)
        done = project.run("--hillclimb-reps=2", "--junitxml=junit.xml", "-rs", *options)
        assert_orderly(done)
        assert summary(done) == {"passed": 12, "failed": 4, "error": 4, "skipped": 10}, done.text
        found.append((project, done))
    (alone, before), (many, after) = found
    assert _records(many) == _records(alone)
    assert _junit(many) == _junit(alone)
    assert _table(after.lines) == _table(before.lines)
    assert len(many.pids()) == 2
    for project in (alone, many):
        run = json.loads((project.flow / "baseline/run.json").read_text())
        assert run["candidates"] == {"luna": "luna-1", "kimi": "kimi-1", "glm": "glm-1"}


def _records(project: WorkerProject) -> list[dict[str, Any]]:
    rows = [{**row, "latency_s": 0} for row in (*project.rows(), *project.errors())]
    return sorted(rows, key=lambda row: (row["prompt_id"], row["rep"]))


def _junit(project: WorkerProject) -> dict[str, Any]:
    found = {}
    for each in ET.parse(project.root / "junit.xml").iter("testcase"):
        kinds = [child.tag for child in each if child.tag in ("failure", "error", "skipped")]
        properties = {p.get("name"): p.get("value") for p in each.iter("property")}
        properties.pop("hillclimb.latency_s", None)
        found[f"{each.get('classname')} {each.get('name')}"] = (kinds, properties)
    return found


def _table(lines: list[str]) -> list[str]:
    words = ("scored", "errors", "skipped", "candidate", "luna", "kimi", "glm", "cost")
    return [line for line in lines if line.split(" ")[0] in words]


def test_references_selections_and_cases_of_a_hook(new_project: NewWorkerProject) -> None:
    loading = """
def pytest_hillclimb_load_cases(config):
    return [{"id": "x y", "expected": object()}, {"id": "z"}]
"""
    project = matrix(new_project, candidate("luna"), candidate("kimi"), hooks=HOOKS + loading)
    assert project.run("-n2", "-k", "kimi or z").status == 0
    assert len(project.calls()) == 3
    done = project.run("-n2", "--hillclimb-variant=v1", "--hillclimb-candidate=kimi", "--hillclimb-limit=1", "-v")
    assert_orderly(done)
    [row] = project.rows("v1")
    assert row["explanation"] == {"pass": "against  kimi on x y"}
    assert row["meta"]["original_id"] == "x y"
    assert f"evals/conftest.py::{row['prompt_id'].removesuffix('.kimi')}::kimi/rep0" in done.text


# --- the ceiling ------------------------------------------------------------------------------------------------------


def test_spend_stays_below_the_ceiling(new_project: NewWorkerProject) -> None:
    project = matrix(new_project, candidate("luna", max_cost_usd=2))
    project.write_cases(*cases(24, seconds=0.01))
    done = project.run("-n4", "--hillclimb-max-cost=14", "-rs")
    assert_orderly(done)
    assert done.status == 1
    assert "cost ceiling 14 USD (3.5 for each worker); it may end before all are run" in done.text
    ran = spent(project)
    assert 14 - 2 * 4 < ran <= 14, "of each share, less than one worst case goes unused"
    assert len(project.rows()) == ran
    assert summary(done) == {"passed": ran, "skipped": 24 - ran}
    assert f"ceiling    {ran:.4f} of 14 USD charged; it kept {24 - ran} executions from being run" in done.lines
    assert "of 3.5 USD of this worker's share are spent, and this execution may cost 2" in done.text


def test_a_ceiling_that_no_share_can_hold_is_refused(new_project: NewWorkerProject) -> None:
    project = matrix(new_project, candidate("luna", max_cost_usd=2))
    project.write_cases(*cases(4))
    done = project.run("-n4", "--hillclimb-max-cost=7")
    done.assert_refused("7 USD (1.75 for each of 4 workers) is below the 2 USD that one execution may cost")
    assert project.calls() == []


def test_what_is_refused_or_never_measured_is_told_of_what_was_selected(new_project: NewWorkerProject) -> None:
    project = matrix(
        new_project, candidate("luna", max_cost_usd=5), candidate("kimi", max_cost_usd=1), candidate("glm")
    )
    project.write_cases(*cases(3))
    project.run("-n2", "--hillclimb-max-cost=8").assert_refused("what glm (glm-1) may cost is not known")
    assert project.calls() == []
    done = project.run("-n2", "--hillclimb-max-cost=8", "-k", "not glm")
    assert_orderly(done)
    told = "never measured, as one execution may cost more than a worker's share of 4 USD: luna (luna-1) may cost 5 USD"
    assert f"hillclimb: note: {told}" in done.lines
    assert summary(done) == {"passed": 3, "skipped": 3}, "who can be measured is"


def test_a_worker_without_money_leaves_the_rest_to_the_others(new_project: NewWorkerProject) -> None:
    project = matrix(new_project)
    project.write_cases(case("dear", cost=16, seconds=0.1), *cases(14, seconds=0.05))
    done = project.run("-n2", "--hillclimb-model=luna-1", "--hillclimb-max-cost=32", "--hillclimb-trial-cost=1", "-rs")
    assert_orderly(done)
    told = re.findall(r"cost ceiling: (\S+) of 16 USD of this worker's share are spent", done.text)
    assert set(told) == {"16.0000"}
    ran = len(project.calls())
    assert ran == len(project.rows()) >= 15 - 3, "no more is skipped than what the worker had been given before"
    assert summary(done) == {"passed": ran, "skipped": 15 - ran}


def test_workers_that_die_take_no_money_with_them(new_project: NewWorkerProject) -> None:
    """They die over an execution, whose worst case counts as spent, and over an ordinary test, which costs nothing."""
    project = matrix(new_project)
    (project.root / "pytest.ini").write_text((project.root / "pytest.ini").read_text() + "testpaths = tests\n")
    (project.root / "tests").mkdir()
    dies = "import os, time\ndef test_dies():\n    time.sleep(0.3)\n    os._exit(3)\n"
    (project.root / "tests/test_dies.py").write_text(dies)
    project.write_cases(*cases(4), case("deadly", "exit"), *(case(f"more-{n}", seconds=0.02) for n in range(30)))
    options = ("--hillclimb-model=luna-1", "--hillclimb-trial-cost=1", "--hillclimb-max-cost=12")
    done = project.run("-n2", *options, "tests", "evals")
    assert done.status == 1
    assert "Traceback" not in done.text
    assert [row["failure_class"] for row in project.errors()] == ["worker_lost"]
    assert spent(project) <= 12
    assert len(project.rows()) == spent(project) - 1
    assert f"ceiling    {spent(project):.4f} of 12 USD charged" in done.text
    assert spent(project) >= 10, "each worker's share has its heir"


# --- qualification ----------------------------------------------------------------------------------------------------


def test_a_worker_looks_at_its_own_environment(new_project: NewWorkerProject) -> None:
    def session(required: bool) -> None:
        project = matrix(new_project, candidate("luna", "LUNA_KEY"), candidate("kimi"))
        project.write_cases(*cases(2))
        options = ["--hillclimb-require-qualified"] if required else []
        done = project.run("-d", "--tx=popen//env:LUNA_KEY=", *options, "-rs", LUNA_KEY="k")
        assert_orderly(done)
        errors = [(row["failure_class"], row["code"], row["error"]) for row in project.errors()]
        told = "not qualified: luna needs LUNA_KEY in the environment"
        if required:
            assert (done.status, summary(done)) == (1, {"passed": 2, "error": 2})
            assert errors == [("infrastructure", "qualification_environment_missing", told)] * 2
        else:
            assert (done.status, summary(done), errors) == (0, {"passed": 2, "skipped": 2}, [])
            assert told in done.text
        assert {call.key[0].split()[-1] for call in project.calls()} == {"kimi"}

    side_by_side(session, [True, False])


def test_the_controller_refuses_before_anything_is_scheduled(new_project: NewWorkerProject) -> None:
    project = matrix(new_project, candidate("luna", "LUNA_KEY"))
    project.write_cases(*cases(2))
    done = project.run("-n2", "--hillclimb-require-qualified", LUNA_KEY="")
    done.assert_refused("luna needs LUNA_KEY in the environment")


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_nothing_secret_is_left_of_a_session_with_workers(new_project: NewWorkerProject) -> None:
    project = matrix(new_project, candidate("luna"))
    (project.evals / "conftest.py").write_text(TELLING)
    ini = project.root / "pytest.ini"
    ini.write_text(ini.read_text() + f"hillclimb_redact = {PATTERN}\n")
    project.write_cases(*telling_cases())
    left = project.root / "left"
    left.mkdir()
    logs = (f"--junitxml={left}/junit.xml", "-ojunit_logging=all", f"-olog_file={left}/log.txt", "-olog_cli=true")
    done = project.run("-n2", "-rA", "-vv", *logs, **{ENV_NAME: ENV_VALUE})
    assert summary(done).items() >= {"passed": 1, "failed": 1, "error": 4, "skipped": 2}.items(), done.text
    assert leaks([done.text], project.flow, left, project.root / "tmp") == []
    assert done.text.count("[REDACTED]") > 50
    assert "[REDACTED]" in (left / "junit.xml").read_text()
