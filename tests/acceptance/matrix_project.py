"""A matrix for the acceptance tests: what a candidate does with a case is written in the case.

A token costs one US dollar, so that costs can be read off; every usage is of input tokens alone.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from typing import Any

import pytest
from eval_project import Project

MODELS = ("luna-1", "kimi-1", "glm-1", "judge-1")
PRICES = "".join(f"\n    {model} in=1000000 out=0" for model in MODELS)

HOOKS = """
import os
import time
from pathlib import Path

import pytest

from pytest_hillclimb import Grade, InfrastructureError, Run

ROOT = Path(__file__).parents[1]


def field(case, ctx):
    does = case.model_extra.get(ctx.candidate.id if ctx.candidate else "", {})
    return {**case.model_extra, **does}.get


def usage(tokens):
    return {"input_tokens": tokens, "output_tokens": 0}


def pytest_hillclimb_run_case(case, ctx):
    do = field(case, ctx)
    who = ctx.candidate.id if ctx.candidate else "-"
    with open(ROOT / "spend.log", "a", encoding="utf-8") as file:
        file.write(f"run {case.id} {who}/rep{ctx.rep} {ctx.attempt}\\n")
    time.sleep(do("sleep", 0))
    if do("infra") and ctx.attempt <= do("times", 99):
        error = InfrastructureError("sandbox_lost", do("infra") == "retryable", "the sandbox is gone")
        if do("fails_for"):
            error.usage, error.model = usage(do("fails_for")), ctx.model
        raise error
    if do("raises"):
        raise RuntimeError(do("raises"))
    if do("skips"):
        pytest.skip(do("skips"))
    if do("asks"):
        (ROOT / f"asked-{who}.txt").write_text("\\n".join(sorted(ctx.environment())))
    tokens = do("cost", 1)
    return Run(output=f"{who} on {case.id}", model=do("served", ctx.model), usage=tokens and usage(tokens))


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    do = field(case, ctx)
    if do("skips_grading"):
        pytest.skip("no grade today")
    judge = {"judge_model": "judge-1", "judge_usage": usage(do("judge"))} if do("judge") else {}
    return Grade(grade=do("grade", True), explanation=f"against {ref}", **judge)
"""


def candidate(id_: str, *, env: str | None = None, tier: str | None = None, **budget: Any) -> dict[str, Any]:
    """Return a candidate whose model is its id with ``-1``; *budget* holds its limits."""
    given: dict[str, Any] = {"id": id_, "model": f"{id_}-1", "budget": budget}
    if env is not None:
        given["qualification"] = {"required_env": [env]}
    return {**given, "tier": tier} if tier is not None else given


def case(id_: str, **does: Any) -> dict[str, Any]:
    """Return a case; a field named like a candidate is for this one alone."""
    return {"id": id_, "prompt": f"question {id_}", **does}


class Matrix:
    """A project with two slots: ``first`` has the candidate luna, ``second`` has kimi and glm."""

    def __init__(self, project: Project, *cases: dict[str, Any]) -> None:
        self.project = project
        project.write("evals/conftest.py", HOOKS)
        project.ini(hillclimb_enabled="true", hillclimb_prices=PRICES)
        self.candidates(candidate("luna"))
        project.cases(*(cases or [case("a"), case("b")]))

    def candidates(self, *first: dict[str, Any], **more: Any) -> None:
        """Write the manifest, with the candidates of the first slot; *more* may give the second, and the schedule."""
        second = more.pop("second", [candidate("kimi"), candidate("glm")])
        slots = [{"id": "first", "candidates": list(first)}, {"id": "second", "candidates": second}]
        self.write({"slots": [slot for slot in slots if slot["candidates"]], **more})

    def alone(self, **budget: Any) -> None:
        """Let luna, with this budget, be the only candidate."""
        self.candidates(candidate("luna", **budget), second=[])

    def write(self, manifest: object) -> None:
        self.project.write("candidates.json", json.dumps(manifest))

    def run(self, *args: str) -> Any:
        """Run the matrix; the harness is approved as it is."""
        return self.project.approved("--hillclimb-candidates=candidates.json", *args)

    def rows(self, variant: str = "baseline") -> dict[str, dict[str, Any]]:
        """Return the results rows by the stems of their files."""
        return {f"{row['prompt_id']}_rep{row['rep']}": row for row in self.project.rows(variant)}

    def errors(self) -> dict[str, dict[str, Any]]:
        return {f"{row['prompt_id']}_rep{row['rep']}": row for row in self.project.errors()}

    def calls(self) -> list[str]:
        """Return the calls of the app so far, such as ``a luna/rep0``."""
        return self.project.spent()

    def junit(self) -> dict[str, tuple[str, dict[str, str]]]:
        """Return, of ``junit.xml``, what each execution is to JUnit, and its properties."""
        found = {}
        for each in ET.parse(self.project.path / "junit.xml").iter("testcase"):
            kinds = [child.tag for child in each if child.tag in ("failure", "error", "skipped")]
            pairs = [(p.get("name", ""), p.get("value", "")) for p in each.iter("property")]
            properties = {name.removeprefix("hillclimb."): value for name, value in pairs}
            name = f"{each.get('classname', '').rsplit('.', 1)[1]} {each.get('name')}"
            found[name] = (kinds[0] if kinds else "passed", properties)
        return found


def nodes(result: pytest.RunResult) -> list[str]:
    """Return the executions that were collected, or planned, by case and name, such as ``a::luna/rep0``."""
    found = [re.search(r"catalog\.\w+::(\S+)", line) for line in result.outlines]
    return [each[1] for each in found if each is not None]


def counts(result: pytest.RunResult) -> Counter[str]:
    """Return pytest's own counts."""
    return Counter(result.parseoutcomes())


def table(result: pytest.RunResult, label: str) -> str:
    """Return the one line of the final table that begins with *label*, without its alignment."""
    [line] = [line for line in result.outlines if line.split(" ")[0] == label]
    return " ".join(str(line).split())


def reasons(result: pytest.RunResult) -> list[str]:
    """Return why executions were skipped, as ``-rs`` shows it, once for each."""
    found = [re.match(r"SKIPPED \[(\d+)\] \S+: (.*)", line) for line in result.outlines]
    return [reason for each in found if each is not None for reason in [each[2]] * int(each[1])]
