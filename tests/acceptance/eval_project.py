"""A small eval project for the acceptance tests: what its hooks do is written in the fields of its cases."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

APPROVE = "--hillclimb-approve-harness"

INI = """
[pytest]
hillclimb_enabled = true
hillclimb_paths = evals
"""

HOOKS = """
import logging
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_hillclimb import Grade, Run, Turn

ROOT = Path(__file__).parents[1]


def spend(word, case, ctx):
    with open(ROOT / "spend.log", "a", encoding="utf-8") as file:
        file.write(f"{word} {case.id} rep{ctx.rep} {ctx.variant}\\n")


def say(case):
    for text in case.model_extra.get("prints", ()):
        print(text)
    for text in case.model_extra.get("warns", ()):
        print(text, file=sys.stderr)
    for text in case.model_extra.get("logs", ()):
        logging.getLogger("app").warning(text)
    for text in case.model_extra.get("informs", ()):
        logging.getLogger("app").info(text)
    for text in case.model_extra.get("threads", ()):
        thread = threading.Thread(target=print, args=(text,))
        thread.start()
        thread.join()


def act(case):
    field = case.model_extra.get
    if "raises" in field("unless", "raises") and field("raises"):
        raise RuntimeError(field("raises"))
    if field("breaks_until") and not (ROOT / field("breaks_until")).exists():
        raise RuntimeError("still broken")
    if field("skips"):
        pytest.skip(field("skips"))


def answer(case):
    said = case.model_extra.get("says", f"said {case.id}")
    return Run(
        output=said,
        transcript=[Turn(role="user", content=case.stored_prompt), Turn(role="assistant", content=str(said))],
        usage=case.model_extra.get("usage", {"input_tokens": 3, "output_tokens": 2}),
        model=case.model_extra.get("model"),
    )


def pytest_hillclimb_run_case(case, ctx):
    spend("run", case, ctx)
    time.sleep(case.model_extra.get("sleep", 0))
    say(case)
    act(case)
    return answer(case)


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    spend("grade", case, ctx)
    grade = case.model_extra.get("grade", True)
    if grade == "raise":
        raise ValueError("no grade for this")
    return Grade(grade=grade, explanation=case.model_extra.get("why"))
"""

ASYNC_RUN = """

async def pytest_hillclimb_run_case(case, ctx):
    import asyncio

    spend("run", case, ctx)
    await asyncio.sleep(case.model_extra.get("sleep", 0))
    say(case)
    act(case)
    return answer(case)
"""


class Project:
    """An eval project in a directory of its own, and what came of running it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.write("pytest.ini", INI)
        self.write("evals/conftest.py", HOOKS)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        return path

    def cases(self, *cases: dict[str, Any], file: str = "evals/catalog.json") -> None:
        self.write(file, json.dumps(cases))

    def ini(self, **keys: object) -> None:
        lines = [f"{key} = {value}" for key, value in {"hillclimb_paths": "evals", **keys}.items()]
        self.write("pytest.ini", "[pytest]\n" + "\n".join(lines) + "\n")

    def run(self, *args: str, **options: Any) -> pytest.RunResult:
        """Run pytest in this process."""
        return self.pytester.runpytest_inprocess(*args, **options)

    def approved(self, *args: str, **options: Any) -> pytest.RunResult:
        return self.run(APPROVE, *args, **options)

    def command(
        self, *args: str, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run pytest in a process of its own, as a user would."""
        command = [sys.executable, "-m", "pytest", *args]
        return subprocess.run(
            command, cwd=cwd or self.path, env=env, capture_output=True, text=True, timeout=60, check=False
        )

    @property
    def flow(self) -> Path:
        return self.path / ".claude/hillclimb/flow"

    def rows(self, variant: str = "baseline", flow: Path | None = None) -> list[dict[str, Any]]:
        return read_lines((flow or self.flow) / variant / "results.jsonl")

    def errors(self, variant: str = "baseline", flow: Path | None = None) -> list[dict[str, Any]]:
        return read_lines((flow or self.flow) / variant / "errors.jsonl")

    def slots(self, variant: str = "baseline") -> list[tuple[str, int]]:
        return sorted((row["prompt_id"], row["rep"]) for row in self.rows(variant))

    def spent(self, word: str = "run") -> list[str]:
        """Return the calls of a hook so far, in their order, such as ``a rep0``."""
        log = self.path / "spend.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [" ".join(line.split()[1:3]) for line in lines if line.split()[0] == word]

    def files(self) -> dict[str, bytes]:
        """Return all files of the project but caches and the spend log, with their bytes."""
        found = {}
        for path in sorted(self.path.rglob("*")):
            name = path.relative_to(self.path).as_posix()
            if path.is_file() and not re.search(r"__pycache__|\.pytest_cache|^spend\.log|^temporary", name):
                found[name] = path.read_bytes()
        return found


def read_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def refused(result: pytest.RunResult) -> str:
    """Check that a session was refused as it should be, and return the one line that says why."""
    told = [line for line in result.errlines if line.strip()]
    assert result.ret == 4, (result.ret, told)
    assert len(told) == 1, told
    assert told[0].startswith("ERROR: hillclimb: "), told
    shown = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown
    return told[0].removeprefix("ERROR: hillclimb: ")


def reports(result: Any, when: str = "call") -> dict[str, pytest.TestReport]:
    """Return the report of each item, by the name of its case and repetition; of errors too."""
    found = {}
    for report in result.reprec.getreports("pytest_runtest_logreport"):
        if report.when == when or (when == "call" and report.when == "setup" and not report.passed):
            found["::".join(report.nodeid.split("::")[1:])] = report
    return found
