"""SIGKILL at random moments: what is on disk is whole, and nothing that was on disk is paid for again."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from time import sleep

from crash_project import Call, NewProject, Project, Slowness, keys, side_by_side

CASES, REPS = 100, 2
SLOTS = sorted((f"case-{n}", rep) for n in range(CASES) for rep in range(REPS))
LATE_S = 0.3  # a row is on disk so long after its call at the latest; the promise is 0.1 s on an idle machine

EVAL = """
import random

def pytest_hillclimb_load_cases(config):
    return [{"id": f"case-{n}", "prompt": f"Question {n}?", "expected": str(n)} for n in range(100)]

def latency(case, ctx):
    chance = random.Random(ctx.seed)
    return 0 if chance.random() < 0.3 else chance.uniform(0.005, 0.05)

def result(case, ctx):
    spend("end", case, ctx)
    turns = [{"role": "user", "content": f"{case.id}: " + "\\u00e9\\u2028\\n" * 400} for _ in range(6)]
    return {"output": f"answer to {case.id}\\n" + "\\u00fc" * 5000, "transcript": turns}

async def answer_later(case, ctx):
    await asyncio.sleep(latency(case, ctx))
    return result(case, ctx)

def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    if int(case.expected) % 2:
        return answer_later(case, ctx)
    time.sleep(latency(case, ctx))
    return result(case, ctx)

def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return {"pass": case.expected in run.output.split("\\n")[0], "neutral": 0.5}
"""

OPTIONS = ("--hillclimb-reps", str(REPS), "--hillclimb-concurrency", "8", "-q")


def test_kills_while_calls_are_made(new_project: NewProject, slowness: Slowness) -> None:
    side_by_side(lambda seed: _kill_by_calls(new_project(EVAL), random.Random(seed), slowness), [11, 12], width=2)


def test_kills_at_any_moment_of_a_session(new_project: NewProject, slowness: Slowness) -> None:
    side_by_side(lambda seed: _kill_by_the_clock(new_project(EVAL), random.Random(seed), slowness), [21, 22], width=2)


def test_lock_is_free_although_a_child_of_the_app_lives_on(new_project: NewProject) -> None:
    """Workers of a process pool outlive a killed parent; they must not hold what only the parent was given."""
    project = new_project(
        """
        def pytest_hillclimb_run_case(case, ctx):
            spend("begin", case, ctx)
            if case.id == "forks":
                child = os.fork()
                if not child:
                    time.sleep(30)
                    os._exit(0)
                (HOME / "child").write_text(str(child))
            elif not (HOME / "killed").exists():
                time.sleep(30)
            return {"output": "x"}


        def pytest_hillclimb_grade_case(case, run, ref, ctx):
            return True
        """
    )
    project.write_cases({"id": "forks"}, {"id": "hangs"})
    session = project.start("--hillclimb-concurrency", "1")
    session.wait_until(lambda: len(project.calls()) == 2 and project.rows())
    session.kill()
    (project.root / "killed").touch()
    try:
        done = project.run()
    finally:
        os.kill(int((project.root / "child").read_text()), signal.SIGKILL)
    assert done.status == 0, done.text
    assert keys(project.rows()) == [("forks", 0), ("hangs", 0)]


def _kill_by_calls(project: Project, chance: random.Random, slowness: Slowness) -> None:
    killed: dict[int, float] = {}
    for _ in range(5):
        session = project.start(*OPTIONS)
        enough = len(project.calls()) + chance.randint(5, 40)
        project.wait_for_calls(session, enough)
        sleep(chance.uniform(0, 0.06))
        assert session.running, "the run was to be killed before its end"
        killed[session.pid] = session.kill() - LATE_S * slowness()
        _assert_rows_are_whole(project, kills=len(killed))
    _assert_completes(project, killed)


def _kill_by_the_clock(project: Project, chance: random.Random, slowness: Slowness) -> None:
    killed: dict[int, float] = {}
    for _ in range(7):
        session = project.start(*OPTIONS)
        sleep(chance.uniform(0.05, 0.6))
        killed[session.pid] = session.kill() - LATE_S * slowness()
        _assert_rows_are_whole(project, kills=len(killed))
    _assert_completes(project, killed)


def _assert_completes(project: Project, killed: dict[int, float]) -> None:
    done = project.run(*OPTIONS)
    assert done.status == 0, done.text
    _assert_rows_are_whole(project, kills=len(killed))
    assert keys(_readable(project.flow / "baseline/results.jsonl")) == SLOTS
    assert not (project.flow / "baseline/errors.jsonl").exists()
    _assert_paid_once(project.calls(), killed)
    again = project.run(*OPTIONS)
    assert again.status == 0
    assert "200 passed" in again.text


def _assert_rows_are_whole(project: Project, *, kills: int) -> None:
    """Assert that each row has its trace and its reference, and that no other line is there but torn ones."""
    results = project.flow / "baseline/results.jsonl"
    lines = results.read_bytes().split(b"\n") if results.exists() else []
    rows = _readable(results)
    assert len([line for line in lines if line]) - len(rows) <= kills
    for row in rows:
        case, rep = row["prompt_id"], row["rep"]
        trace = (results.parent / f"traces/{case}_rep{rep}.json").read_bytes()
        turns = [{"role": "user", "content": f"{case}: " + "\u00e9\u2028\n" * 400} for _ in range(6)]
        assert trace == json.dumps(turns, indent=2, ensure_ascii=False).encode()
        assert (results.parent / "ref" / case).read_text() == f"answer to {case}\n" + "\u00fc" * 5000
        assert row["passed"] is True


def _readable(file: Path) -> list[dict[str, object]]:
    rows = []
    for line in file.read_bytes().split(b"\n") if file.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            # What was torn off is the beginning of a row.
            assert not line or line.startswith(b'{"prompt_id":"case-')
            continue
        assert isinstance(row, dict)
        rows.append(row)
    return rows


def _assert_paid_once(calls: list[Call], killed: dict[int, float]) -> None:
    """Assert that a call was made again only if a kill found it in flight or only just ended.

    :param killed: for each session that was killed, since when a row of it need not have been on disk
    """
    for key in {call.key for call in calls}:
        *earlier, last = [call for call in calls if call.key == key]
        assert last.ended is not None
        for call in earlier:
            assert call.pid in killed, f"{key} was called twice in one session, or again after a session that ended"
            assert call.ended is None or call.ended > killed[call.pid], f"{key} was paid for twice"
        sessions = [call.pid for call in (*earlier, last)]
        assert len(set(sessions)) == len(sessions), f"{key} was called twice in one session"
