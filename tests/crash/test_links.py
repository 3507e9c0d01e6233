"""Links and other things planted where the plugin reads or writes: their targets keep their bytes, no row is lost."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from crash_project import (
    NewProject,
    Project,
    Session,
    contents,
    keys,
    read_rows,
    side_by_side,
    snapshot,
)

EVAL = """
def pytest_hillclimb_load_cases(config):
    return [{"id": f"c{n}"} for n in range(12)]


def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    time.sleep(float(os.environ.get("LATENCY", "0")))
    page = ctx.attach("page.txt", f"page of {case.id}")
    spend("end", case, ctx)
    return {"output": f"answer to {case.id}", "transcript": [{"role": "assistant", "attachments": [page]}]}


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return {"pass": True, "same": 0.5 if ref is None else float(run.output == ref)}
"""

ALL = sorted((f"c{n}", 0) for n in range(12))


class Outside:
    """Files of somebody else, and what may be planted to reach them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "traces").mkdir(parents=True)
        (directory / "baseline").mkdir()
        self.file = directory / "precious"
        self.file.write_bytes(b'{"harness_sha": "precious"}\n')
        self._before = contents(directory)

    def assert_untouched(self) -> None:
        assert contents(self.directory) == self._before

    def symlink(self, place: Path) -> None:
        place.symlink_to(self.file)

    def directory_symlink(self, place: Path) -> None:
        place.symlink_to(self.directory)

    def dangling(self, place: Path) -> None:
        place.symlink_to(self.directory / "nowhere")

    def hard_link(self, place: Path) -> None:
        place.hardlink_to(self.file)

    def fifo(self, place: Path) -> None:
        os.mkfifo(place)

    def a_directory(self, place: Path) -> None:
        place.mkdir()

    def a_file(self, place: Path) -> None:
        place.write_text("{}\n")

    @property
    def for_files(self) -> list[Callable[[Path], None]]:
        return [self.symlink, self.dangling, self.hard_link, self.fifo, self.a_directory]

    @property
    def for_directories(self) -> list[Callable[[Path], None]]:
        return [self.directory_symlink, self.dangling, self.fifo, self.a_file]


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path / "outside")


def put(plant: Callable[[Path], None], place: Path) -> None:
    """Plant something at *place*, and move what is there aside."""
    if os.path.lexists(place):
        place.rename(place.with_name(f"_{place.name}.aside"))
    plant(place)


# --- before a run: refused --------------------------------------------------------------------------------------------

FILES = (
    ["_state.json"]
    + [f"baseline/{name}" for name in ("results.jsonl", "errors.jsonl", "progress.txt", "run.json", "summary.json")]
    + ["baseline/.lock"]
)


@pytest.mark.parametrize("where", FILES)
def test_planted_file_refuses_the_run(new_project: NewProject, outside: Outside, where: str) -> None:
    for plant in outside.for_files:
        _assert_refused(new_project, plant, where)
    outside.assert_untouched()


@pytest.mark.parametrize("where", ["", "baseline", "baseline/traces", "baseline/out", "baseline/ref"])
def test_planted_directory_refuses_the_run(new_project: NewProject, outside: Outside, where: str) -> None:
    for plant in outside.for_directories:
        _assert_refused(new_project, plant, where)
    outside.assert_untouched()


@pytest.mark.parametrize("where", ["_state.json", "baseline", "baseline/ref", "v1", "v1/results.jsonl"])
def test_planted_link_refuses_a_later_round(new_project: NewProject, outside: Outside, where: str) -> None:
    link = outside.symlink if "json" in where else outside.directory_symlink
    for plant in (link, outside.dangling):
        _assert_refused(new_project, plant, where, "--hillclimb-variant", "v1")
    outside.assert_untouched()


@pytest.mark.parametrize("option", ["--hillclimb-plan", "--collect-only", "--hillclimb-fresh"])
def test_planted_file_is_not_read_either(new_project: NewProject, outside: Outside, option: str) -> None:
    for where in ("_state.json", "baseline/results.jsonl"):
        _assert_refused(new_project, outside.symlink, where, option)
    outside.assert_untouched()


def _assert_refused(new_project: NewProject, plant: Callable[[Path], None], where: str, *args: str) -> None:
    project = new_project(EVAL)
    (project.flow / "baseline/ref").mkdir(parents=True)
    (project.flow / "baseline/traces").mkdir()
    (project.flow / "v1").mkdir()
    place = project.flow / where if where else project.flow
    put(plant, place)
    before = snapshot(project.flow.parent)
    project.run(*args).assert_refused(where or "flow")
    assert snapshot(project.flow.parent) == before
    assert project.calls() == []


@pytest.mark.parametrize("where", ["one", "one/two", "one/two/three"])
def test_linked_ancestors_of_a_relative_flow(new_project: NewProject, outside: Outside, where: str) -> None:
    project = new_project(EVAL)
    place = project.root / where
    place.parent.mkdir(parents=True, exist_ok=True)
    outside.directory_symlink(place)
    project.run("--hillclimb-flow", "one/two/three").assert_refused(where, "link")
    outside.assert_untouched()


def test_linked_ancestor_of_the_default_flow(new_project: NewProject, outside: Outside) -> None:
    project = new_project(EVAL)
    outside.directory_symlink(project.root / ".claude")
    project.run().assert_refused(".claude", "link")
    outside.assert_untouched()


@pytest.mark.parametrize("flow", ["./flow", "flow/../flow", "flow/.", "../flow", "/", ""])
def test_flow_with_dot_segments(new_project: NewProject, flow: str) -> None:
    project = new_project(EVAL)
    before = set(contents(project.root))
    project.run("--hillclimb-flow", flow).assert_refused("flow")
    assert all(name.startswith("session") for name in set(contents(project.root)) - before)


def test_ancestors_of_an_absolute_flow_are_trusted(new_project: NewProject, tmp_path: Path) -> None:
    project = new_project(EVAL)
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    done = project.run("--hillclimb-flow", str(tmp_path / "link/flow/"))
    assert done.status == 0, done.text
    assert (tmp_path / "disk/flow/baseline/results.jsonl").exists()
    (tmp_path / "link/linked").symlink_to("flow")
    project.run("--hillclimb-flow", str(tmp_path / "link/linked/")).assert_refused("linked", "link")


# --- before a run: one trial's file -----------------------------------------------------------------------------------


def test_planted_traces_are_reported(new_project: NewProject, outside: Outside) -> None:
    project = new_project(EVAL)
    traces = project.flow / "baseline/traces"
    traces.mkdir(parents=True)
    for n, plant in enumerate(outside.for_files):
        plant(traces / f"c{n}_rep0.json")
    done = project.run()
    assert done.status == 0, done.text
    outside.assert_untouched()
    assert keys(project.rows()) == ALL
    marked = {row["prompt_id"]: row["meta"]["trace_error"] for row in project.rows() if "meta" in row}
    assert sorted(marked) == ["c0", "c1", "c2", "c3", "c4"]
    assert all(f"{name}_rep0.json" in text for name, text in marked.items())
    assert warned_of(done.text) == {"c0", "c1", "c2", "c3", "c4"}
    assert (traces / "c5_rep0.json").is_file()


def test_planted_references_are_reported(new_project: NewProject, outside: Outside) -> None:
    project = new_project(EVAL)
    refs = project.flow / "baseline/ref"
    refs.mkdir(parents=True)
    for n, plant in enumerate(outside.for_files):
        plant(refs / f"c{n}")
    done = project.run()
    assert done.status == 0, done.text
    outside.assert_untouched()
    assert keys(project.rows()) == ALL
    assert project.errors() == []
    assert (refs / "c5").read_text() == "answer to c5"
    assert warned_of(done.text) == {"c0", "c1", "c2", "c3", "c4"}


def test_planted_references_fail_their_trials_in_a_later_round(new_project: NewProject, outside: Outside) -> None:
    project = new_project(EVAL)
    assert project.run().status == 0
    refs = project.flow / "baseline/ref"
    for n, plant in enumerate(outside.for_files):
        (refs / f"c{n}").unlink()
        plant(refs / f"c{n}")
    (refs / "c5").unlink()
    outside.symlink(refs / "c5.html")
    done = project.run("--hillclimb-variant", "v1")
    assert done.status == 1, done.text
    outside.assert_untouched()
    assert sorted(row["prompt_id"] for row in project.errors("v1")) == ["c0", "c1", "c2", "c3", "c4", "c5"]
    assert all(re.search(r"baseline/ref/c\d", row["error"]) for row in project.errors("v1"))
    assert [row["grade"]["same"] for row in project.rows("v1")] == [1] * 6


def test_planted_artifacts_are_reported(new_project: NewProject, outside: Outside) -> None:
    project = new_project(EVAL)
    out = project.flow / "baseline/out"
    for n, plant in enumerate(outside.for_files):
        (out / f"c{n}_rep0").mkdir(parents=True)
        plant(out / f"c{n}_rep0/page.txt")
    outside.directory_symlink(out / "c5_rep0")
    outside.dangling(out / "c6_rep0")
    done = project.run()
    assert done.status == 0, done.text
    outside.assert_untouched()
    assert keys(project.rows()) == ALL
    assert (out / "c7_rep0/page.txt").read_text() == "page of c7"
    assert warned_of(done.text) == {f"c{n}" for n in range(7)}


def warned_of(text: str) -> set[str]:
    """Return the cases that warnings name."""
    return {found[1] for line in text.splitlines() if (found := re.match(r"warning +(c\d+) rep0: ", line))}


# --- in the middle of a run -------------------------------------------------------------------------------------------


def begin(project: Project, *args: str) -> Session:
    """Start a run of some two seconds and wait until rows are on disk."""
    session = project.start("--hillclimb-concurrency", "2", *args, LATENCY="0.2")
    results = project.flow / (args[-1] if args else "baseline") / "results.jsonl"
    session.wait_until(lambda: results.exists() and results.read_bytes().count(b"\n") >= 2)
    return session


def test_variant_or_flow_swapped_while_it_runs(new_project: NewProject, outside: Outside) -> None:
    def check(what: tuple[str, Callable[[Path], None]]) -> None:
        where, plant = what
        project = new_project(EVAL)
        session = begin(project)
        place = project.flow / where if where else project.flow
        aside = place.with_name("_aside")
        place.rename(aside)
        plant(place)
        done = session.end()
        kept = aside if where else aside / "baseline"
        assert keys(read_rows(kept / "results.jsonl")) == ALL, done.text
        assert sorted(file.name for file in (kept / "traces").iterdir()) == sorted(f"c{n}_rep0.json" for n in range(12))
        assert (kept / "ref/c11").read_text() == "answer to c11"
        assert "warning" in done.text
        assert "moved" in done.text
        assert "INTERNALERROR" not in done.text
        assert len(project.calls()) == 12

    for_variant = [("baseline", plant) for plant in outside.for_directories]
    side_by_side(check, [*for_variant, ("", outside.directory_symlink)], width=5)
    outside.assert_untouched()


def test_directory_swapped_while_it_runs(new_project: NewProject, outside: Outside) -> None:
    def check(where: str) -> None:
        project = new_project(EVAL)
        session = begin(project)
        place = project.flow / "baseline" / where
        place.rename(place.with_name(f"_{where}"))
        outside.directory_symlink(place)
        done = session.end()
        assert "INTERNALERROR" not in done.text
        assert keys(project.rows()) == ALL
        assert len(project.calls()) == 12

    side_by_side(check, ["traces", "ref", "out"])
    outside.assert_untouched()


def test_files_planted_while_it_runs(new_project: NewProject, outside: Outside) -> None:
    project = new_project(EVAL)
    session = begin(project)
    baseline = project.flow / "baseline"
    for n, plant in enumerate(outside.for_files):
        plant(baseline / f"traces/c{n + 7}_rep0.json")
        plant(baseline / f"ref/c{n + 7}")
    outside.directory_symlink(baseline / "out/c11_rep0")
    for name, plant in [("errors.jsonl", outside.symlink), ("progress.txt", outside.hard_link)]:
        plant(baseline / name)
    put(outside.symlink, baseline / "summary.json")
    put(outside.hard_link, baseline / "run.json")
    done = session.end()
    outside.assert_untouched()
    assert "INTERNALERROR" not in done.text
    assert keys(project.rows()) == ALL
    marked = sorted(row["prompt_id"] for row in project.rows() if "trace_error" in row.get("meta", {}))
    assert marked == ["c10", "c11", "c7", "c8", "c9"]
    assert done.text.count("warning  ") >= 5


@pytest.mark.parametrize("how", ["removed", "moved"])
def test_results_file_replaced_while_it_runs(new_project: NewProject, outside: Outside, how: str) -> None:
    def check(plant: Callable[[Path], None]) -> None:
        project = new_project(EVAL)
        session = begin(project)
        results = project.flow / "baseline/results.jsonl"
        aside = project.flow / "baseline/_aside.jsonl"
        results.rename(aside)
        kept = b""
        if how == "removed":
            kept = aside.read_bytes()
            aside.unlink()
        plant(results)
        done = session.end()
        assert "INTERNALERROR" not in done.text
        assert_all_rows_kept(project, aside.read_bytes() if aside.exists() else kept, done.text)

    side_by_side(check, outside.for_files if how == "removed" else [outside.symlink, outside.hard_link], width=5)
    outside.assert_untouched()


def test_second_name_given_to_the_results_file_while_it_runs(new_project: NewProject) -> None:
    project = new_project(EVAL)
    session = begin(project)
    results = project.flow / "baseline/results.jsonl"
    (project.root / "second-name").hardlink_to(results)
    before = results.read_bytes()
    done = session.end()
    assert done.status == 1, done.text
    assert results.read_bytes() == before
    assert_all_rows_kept(project, before, done.text)
    assert len(project.calls()) < 12
    (project.root / "second-name").unlink()
    assert project.run().status == 0
    assert keys(project.rows()) == ALL


def assert_all_rows_kept(project: Project, kept: bytes, text: str) -> None:
    """Assert that each call that ended has a row in *kept* or in a temporary file that the session named."""
    names = set(re.findall(rb'"prompt_id":"(c\d+)"', kept))
    rescued = project.rescued()
    names |= {row["prompt_id"].encode() for row in rescued}
    assert names >= {call.key[0].encode() for call in project.calls() if call.ended is not None}
    if rescued:
        assert all(str(file) in text for file in (project.root / "tmp").glob("*.jsonl"))
