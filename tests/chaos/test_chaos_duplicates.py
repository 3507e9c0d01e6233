"""The same result arrives more than once: every effect happens once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from chaos_project import ChaosProject, NewChaosProject, broken, fault, table, warnings
from crash_project import Done, Key, keys

from pytest_hillclimb.chaos.fault import Fault

PLANNED = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
REPS = "--hillclimb-reps=2"

EVAL = """
def pytest_hillclimb_load_cases(config):
    return [{"id": "a"}, {"id": "b"}]


def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    if case.id == "b" and ctx.rep:
        return answer(case, output="something else")
    return answer(case)



if "PYTEST_XDIST_WORKER" in os.environ:

    def pytest_configure(config):
        config.pluginmanager.register(Echo(config))


class Echo:
    # Sends every report twice, and once more through the other worker.

    def __init__(self, config):
        self.config, self.me = config, os.environ["PYTEST_XDIST_WORKER"]
        self.home = next(p for p in config.pluginmanager.get_plugins() if hasattr(p, "sendevent"))

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        if report.when != "call":
            return
        self.home.pytest_runtest_logreport(report=report)
        show(f"{self.me} reported {report.nodeid} again")
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        new = HOME / f"{self.me}-{time.monotonic_ns()}.new"
        new.write_bytes(pickle.dumps(data))
        new.rename(new.with_suffix(".report"))
        wait_until(self.from_the_other)
        for file in self.from_the_other():
            self.home.sendevent("testreport", data={**pickle.loads(file.read_bytes()), "worker_id": self.me})
            show(f"{self.me} reported what {file.name[:3]} did")

    def from_the_other(self):
        return [file for file in HOME.glob("*.report") if not file.name.startswith(self.me)]
"""


def checks(project: ChaosProject, done: Done, control: Done, *, rows: Sequence[Key]) -> dict[str, bool]:
    """Check what came of a session with duplicates.

    :param control: a session of the same project without them
    :param rows: what ``results.jsonl`` is to hold
    """
    return {
        "same exit status": done.status == control.status,
        "each row once": keys(project.rows()) == sorted(rows),
        "no failure is recorded": project.errors() == [],
        "nothing is called again": set(Counter(call.key for call in project.calls()).values()) == {1},
        "same counts, means and spend": table(done) == table(control),
    }


def delivered_twice(project: ChaosProject, given: Fault, *off: str) -> dict[str, bool]:
    """Deliver each outcome three times within a process, the last time with another grade."""
    control = project.run("--hillclimb-fresh", REPS)
    project.forget_calls()
    done = project.run(REPS, *project.plugins("faults/delivers_twice", *off))
    for line in project.evidence:
        given.fire(line)
    named = [f"{name} rep{rep}: delivered again with another content" for name, rep in PLANNED]
    return {
        **checks(project, done, control, rows=PLANNED),
        "other content is refused by name": [name in "\n".join(warnings(done)) for name in named] == [True] * 4,
    }


def test_delivered_twice_in_a_process(new_project: NewChaosProject) -> None:
    given = fault("chaos-duplicate-delivery", "call")
    assert broken(given, delivered_twice(new_project(EVAL), given)) == set()


def test_delivered_twice_with_nobody_to_notice(new_project: NewChaosProject) -> None:
    given = fault("chaos-duplicate-delivery", "call")
    assert broken(given, delivered_twice(new_project(EVAL), given, "guards_off/takes_all")) == {
        "each row once",
        "same counts, means and spend",
        "other content is refused by name",
    }


def reported_twice(project: ChaosProject, given: Fault, *off: str) -> dict[str, bool]:
    """Let two workers send each of their reports twice, and report each other's."""
    control = project.run("--hillclimb-fresh", REPS)
    project.forget_calls()
    done = project.run("-n2", REPS, *project.plugins(*off))
    for line in project.evidence:
        given.fire(line)
    return checks(project, done, control, rows=PLANNED)


def test_reported_twice_by_two_workers(new_project: NewChaosProject) -> None:
    given = fault("chaos-duplicate-delivery", "event")
    assert broken(given, reported_twice(new_project(EVAL), given)) == set()
    assert {line.split()[0] for line in given.evidence} == {"gw0", "gw1"}
    assert any(" did" in line for line in given.evidence)


def test_reported_twice_with_nobody_to_notice(new_project: NewChaosProject) -> None:
    given = fault("chaos-duplicate-delivery", "event")
    assert broken(given, reported_twice(new_project(EVAL), given, "guards_off/takes_all")) == {
        "each row once",
        "same counts, means and spend",
    }


def replayed(project: ChaosProject, given: Fault, *off: str) -> dict[str, bool]:
    """Append everything that is recorded to itself, and some of it once more; then resume."""
    project.run(REPS)
    control = project.run(REPS)
    file = project.flow / "baseline/results.jsonl"
    rows = file.read_bytes()
    file.write_bytes(rows + rows + rows.partition(b"\n")[0] + b"\n")
    again = keys(project.rows())
    given.fire(f"{len(again)} rows")
    return checks(project, project.run(REPS, *project.plugins(*off)), control, rows=again)


def test_replay_of_a_whole_file(new_project: NewChaosProject) -> None:
    given = fault("chaos-duplicate-delivery")
    assert broken(given, replayed(new_project(EVAL), given)) == set()


@pytest.mark.parametrize(
    ("off", "names"),
    [
        ("guards_off/counts_replays", {"same counts, means and spend"}),
        ("guards_off/no_resume", {"each row once", "nothing is called again", "same counts, means and spend"}),
    ],
)
def test_replay_that_is_taken_for_more(new_project: NewChaosProject, off: str, names: set[str]) -> None:
    given = fault("chaos-duplicate-delivery")
    assert broken(given, replayed(new_project(EVAL), given, off)) == names
