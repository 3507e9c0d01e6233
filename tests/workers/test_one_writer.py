"""The controller is the one writer: workers send outcomes home, need nothing of its files, and leave none behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from worker_project import NewWorkerProject, WorkerProject, assert_orderly, case, cases, ids, summary

TELLING = """
def pytest_hillclimb_grade_case(case, run, ref, ctx):
    grade = {"pass": case.model_extra.get("do") != "miss", "length": len(run.output)}
    return {"grade": grade, "explanation": {"pass": f"against {ref}"}}

def pytest_hillclimb_perf(case, run):
    return {"letters": len(run.output)}
"""


def _varied() -> list[dict[str, Any]]:
    return [
        case("plain", tags=["a", "b"], meta={"why": None}),
        case("words", says="caf\u00e9 \u2028 \U0001f600 \x1b[31m"),
        case("half \ud835 pair", says="half \ud835 pair"),
        case("a/b c", says={"answer": [1, 2.5, None]}),
        case("missed", "miss", says="no"),
        case("broken", "fail"),
        case("expects", expected="answer to expects"),
    ]


def test_rows_are_those_of_one_process(new_project: NewWorkerProject) -> None:
    alone, many = new_project(TELLING), new_project(TELLING)
    for project, options in ((alone, ()), (many, ("-n2",))):
        project.write_cases(*_varied())
        for variant in ("baseline", "v1"):
            done = project.run("--hillclimb-reps=2", f"--hillclimb-variant={variant}", *options)
            assert_orderly(done)
            assert summary(done) == {"passed": 10, "failed": 2, "error": 2}, done.text
        assert set(project.calls_by_key().values()) == {2}
    for variant in ("baseline", "v1"):
        assert _records(many, variant) == _records(alone, variant)
        assert _files(many.flow / variant) == _files(alone.flow / variant)


def _records(project: WorkerProject, variant: str) -> list[dict[str, Any]]:
    """Return all rows without what differs from run to run."""
    rows = [{**row, "latency_s": 0} for row in (*project.rows(variant), *project.errors(variant))]
    return sorted(rows, key=lambda row: (row["prompt_id"], row["rep"]))


def _files(directory: Path) -> dict[str, bytes | None]:
    """Return the names below a directory, with the content of those that hold nothing of the run's course."""
    found = sorted(path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.parent.name in ("traces", "ref") else None
        for path in found
    }


LOOKING = """
import sys

if HERE != "one process":
    def look(event, arguments):
        if event == "open" and any(name in str(arguments[0]) for name in (".claude/", ".jsonl", "catalog.json")):
            os.write(OPENED, f"{HERE} opened {arguments[0]}\\n".encode())

    OPENED = os.open(HOME / "opened.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    sys.addaudithook(look)
"""


def test_workers_elsewhere_need_and_leave_nothing(new_project: NewWorkerProject, tmp_path: Path) -> None:
    project = new_project(LOOKING)
    project.write_cases(*cases(9, seconds=0.1), case("missed", "miss"), case("broken", "fail"))
    elsewhere = [tmp_path / "a", tmp_path / "b"]
    tx = ["--tx=popen", *(f"--tx=popen//chdir={directory}" for directory in elsewhere)]
    done = project.run("-d", *tx)
    assert_orderly(done)
    assert summary(done) == {"passed": 9, "failed": 1, "error": 1}
    project.assert_complete(*ids(cases(9)), "missed")
    assert len(project.pids()) == 3, "a worker had nothing to do"
    assert not (project.root / "opened.log").exists() or not (project.root / "opened.log").read_text()
    for directory in elsewhere:
        # These pytest-xdist puts there itself.
        assert {path.name for path in directory.iterdir()} <= {"pytest", "_pytest"}
    # Paths are shown as seen from where the session was started.
    words = [line.split() for line in done.lines]
    assert ["trace", ".claude/hillclimb/flow/baseline/traces/missed_rep0.json"] in words
    assert ["recorded", ".claude/hillclimb/flow/baseline/errors.jsonl"] in words


WEIGHING = """
import gc, json

@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if HERE == "one process":
        facts = {name: len(str(value)) for name, value in vars(report).items() if name != "node"}
        plain = all(type(value) in (str, int, float) for _, value in report.user_properties)
        with (HOME / "reports.jsonl").open("a") as file:
            file.write(json.dumps({"facts": facts, "plain": plain}) + "\\n")

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if HERE == "one process":
        alive = {id(text): text for text in gc.get_referents(*gc.get_objects()) if isinstance(text, str)}
        (HOME / "kept.txt").write_text(str(sum(len(text) >= 100_000 for text in alive.values())))
"""


def test_reports_are_freed_of_their_outcomes(new_project: NewWorkerProject) -> None:
    project = new_project(WEIGHING)
    given = cases(60, says="x" * 100_000)
    project.write_cases(*given)
    done = project.run("-n2", "-q")
    assert done.status == 0, done.text
    project.assert_complete(*ids(given))
    reports = [json.loads(line) for line in (project.root / "reports.jsonl").read_text().splitlines()]
    assert len(reports) == 3 * len(given)
    for report in reports:
        assert not [name for name in report["facts"] if name.startswith("hillclimb_")]
        assert sum(report["facts"].values()) < 4_000, report
        assert report["plain"]
    assert int((project.root / "kept.txt").read_text()) < 5, "answers are kept in memory"


UNSENDABLE = """
import datetime, decimal

class NeedsKeywords(Exception):
    def __init__(self, message, *, response):
        super().__init__(message)
        self.response, self.lock = response, threading.Lock()

class BadStr(Exception):
    def __str__(self):
        raise RuntimeError("str() failed")
    __repr__ = __str__

def pytest_hillclimb_run_case(case, ctx):
    print("said \\udcb2" .encode("utf-8", "replace").decode(), case.id)
    match case.id:
        case "keywords": raise NeedsKeywords("no answer", response=object())
        case "bad-str": raise BadStr
        case "args": raise ValueError(b"\\xff", {1, 2}, 3j)
        case "local":
            class Local(Exception):
                pass
            raise Local("defined inside")
        case "group": raise ExceptionGroup("two", [ValueError("a"), NeedsKeywords("b", response=1)])
        case "surrogate": raise ValueError("half \\ud83d pair \\x00 \\ufffe \\x1b[31m")
        case "usage": return {"output": "fine", "usage": {"cost": decimal.Decimal("0.1"), "day": datetime.date.today()}}
        case "huge": return {"output": "fine", "usage": {"input_tokens": 10**30}, "model": "m\\ud83d\\x1b"}
        case "object": return {"output": object()}
        case "exit": raise SystemExit("usage: app")
        case "cancelled": raise asyncio.CancelledError
    return {"output": "fine"}

def pytest_hillclimb_grade_case(case, run, ref, ctx):
    if case.id == "metric":
        return {"caf\\u00e9 \\ud83d \\x1b": 1.0, "pass": True}
    if case.id == "assert":
        assert run.output == "half \\ud835", run
    return True
"""


def test_nothing_that_cannot_be_sent_reaches_a_report(new_project: NewWorkerProject) -> None:
    kinds = "keywords bad-str args local group surrogate usage huge object exit cancelled metric assert fine"
    alone, many = new_project(UNSENDABLE), new_project(UNSENDABLE)
    results = []
    for project, options in ((alone, ()), (many, ("-n2",))):
        project.write_cases(*(case(kind) for kind in kinds.split()))
        done = project.run("--junitxml=junit.xml", *options)
        assert "INTERNALERROR" not in done.text, done.text
        assert "node down" not in done.text
        assert "\x1b" not in done.text
        results.append(summary(done))
    assert results[0] == results[1]
    assert sum(results[1].values()) == len(kinds.split())
    assert _records(many, "baseline") == _records(alone, "baseline")
