"""What a run leaves in the flow directory, what it reads from there, and what it never touches."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from crash_project import NewProject, Project, Slowness, contents, keys, snapshot

EVAL = """
import pytest


def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    time.sleep(getattr(case, "seconds", 0))
    spend("end", case, ctx)
    return {"output": f"answer to {case.id}", "transcript": [{"role": "user", "content": case.id}], "model": ctx.model}


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return {"pass": not getattr(case, "miss", False)}
"""

# A report builder warns of every other directory in the flow.
KNOWN_DIRECTORIES = {"trajectory", "attachments", "refs", "ref", "inputs", "out", "target", "__pycache__", "baseline"}


def write_cases(project: Project, number: int, **fields: Any) -> list[tuple[str, int]]:
    project.write_cases(*({"id": f"c{n}", **fields} for n in range(number)))
    return [(f"c{n}", 0) for n in range(number)]


def names(project: Project) -> list[str]:
    return sorted(call.key[0] for call in project.calls())


# --- what a run leaves ------------------------------------------------------------------------------------------------


def test_names_that_a_run_leaves(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 3)
    assert project.run().status == 0
    assert project.run("--hillclimb-variant", "v1").status == 0
    assert project.run("--hillclimb-variant", "v12", "--hillclimb-reps", "2").status == 0
    assert {path.name for path in project.flow.iterdir()} == {"_state.json", "baseline", "v1", "v12"}
    for path in project.flow.iterdir():
        if path.is_dir():
            known = path.name.startswith((".", "_")) or path.name in KNOWN_DIRECTORIES
            assert known or re.fullmatch(r"v\d+", path.name)
    left = {"results.jsonl", "traces", "run.json", "summary.json", "progress.txt", ".lock"}
    assert {path.name for path in (project.flow / "v1").iterdir()} == left
    assert {path.name for path in (project.flow / "baseline").iterdir()} == left | {"ref"}
    assert {path.name for path in (project.flow / "baseline/ref").iterdir()} == {"c0", "c1", "c2"}
    assert {path.name for path in (project.flow / "v12/traces").iterdir()} == {
        f"c{n}_rep{rep}.json" for n in range(3) for rep in range(2)
    }
    assert set(contents(project.root)) & {"results.jsonl", "traces"} == set()
    assert list((project.root / "tmp").iterdir()) == []


def test_modes_of_files_and_directories(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 1)
    before = os.umask(0)
    try:
        assert project.run().status == 0
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in project.flow.rglob("*") if path.is_file()}
    assert modes == {0o644}
    assert {path.stat().st_mode & 0o777 for path in project.flow.rglob("*") if path.is_dir()} == {0o755}


def test_run_file_and_progress(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 4)
    assert project.run("--hillclimb-model", "m-1", "--hillclimb-timeout", "9", "--hillclimb-limit", "3").status == 0
    run_file = project.flow / "baseline/run.json"
    first = json.loads(run_file.read_text())
    assert first["model"] == "m-1"
    assert (first["reps"], first["timeout_s"], first["concurrency"]) == (1, 9, 4)
    assert first["selection"]["limit"] == 3
    assert re.fullmatch("[0-9a-f]{64}", first["harness_sha"])
    assert set(first["versions"]) >= {"python", "pytest", "pytest-hillclimb"}
    run_file.write_text(json.dumps({**first, "note": "by hand"}))
    assert project.run("--hillclimb-model", "m-1", "--hillclimb-reps", "2").status == 0
    second = json.loads(run_file.read_text())
    assert second["created_at"] == first["created_at"]
    assert (second["note"], second["reps"]) == ("by hand", 2)
    progress = (project.flow / "baseline/progress.txt").read_text()
    assert re.fullmatch(r"\[baseline\] 5/5 done \(5 ok, 0 failed\), \d+s elapsed, ~0s left\n", progress)
    assert json.loads((project.flow / "baseline/summary.json").read_text())["model"] == "m-1"


@pytest.mark.parametrize(
    ("before", "added"),
    [
        ('{"description": "my words", "label": "mine", "suspicious": false, "model": "my model"}', {}),
        ('{\n  "description": "caf\u00e9",\n  "model": null, "x": [1.50]\n}', {"label": "baseline"}),
        ("{", None),
        ("[1]", None),
        ("\ufeff{}", None),
    ],
)
def test_keys_of_a_person_in_the_summary(new_project: NewProject, before: str, added: dict[str, str] | None) -> None:
    project = new_project(EVAL)
    write_cases(project, 1)
    summary = project.flow / "baseline/summary.json"
    summary.parent.mkdir(parents=True)
    summary.write_text(before)
    done = project.run("--hillclimb-model", "m")
    assert done.status == 0, done.text
    if added:
        assert json.loads(summary.read_text()) == {**json.loads(before), **added}
    else:
        assert summary.read_text() == before
    assert ("summary.json" in done.text) == (added is None)
    assert keys(project.rows()) == [("c0", 0)]


def test_artifacts(new_project: NewProject) -> None:
    project = new_project(
        """
        def pytest_hillclimb_load_cases(config):
            return [{"id": "a"}, {"id": "sp ace"}]


        class Busy(Exception):
            status_code = 503


        def pytest_hillclimb_run_case(case, ctx):
            if ctx.attempt == 1:
                ctx.attach("lost.txt", "of an attempt that failed")
                raise Busy
            page = ctx.attach("page.html", b"<p>" + case.id.encode(), kind="html", alt="the page")
            up = ctx.attach("../../../up.txt", "caf\\u00e9")
            return {"output": "x", "transcript": [{"role": "assistant", "content": "", "attachments": [page, up]}]}


        def pytest_hillclimb_grade_case(case, run, ref, ctx):
            ctx.attach("verdict.txt", "fine")
            return True
        """
    )
    before = set(contents(project.root))
    assert project.run().status == 0
    out = project.flow / "baseline/out"
    rows = {row["meta"].get("original_id", row["prompt_id"]): row for row in project.rows()}
    assert set(rows) == {"a", "sp ace"}
    for name, row in rows.items():
        stem = f"{row['prompt_id']}_rep0"
        turn = json.loads((project.flow / f"baseline/traces/{stem}.json").read_text())[0]
        page, up = turn["attachments"]
        assert page == {"kind": "html", "ref": f"baseline/out/{stem}/page.html", "alt": "the page"}
        assert (project.flow / page["ref"]).read_bytes() == b"<p>" + name.encode()
        assert (project.flow / up["ref"]).read_text() == "caf\u00e9"
        assert Path(up["ref"]).parent == Path(f"baseline/out/{stem}")
        kept = {path.name for path in (out / stem).iterdir()}
        assert kept == {"page.html", Path(up["ref"]).name, "verdict.txt"}
    new = {
        name for name in set(contents(project.root)) - before if not name.startswith((".claude", "session", "spend"))
    }
    assert {name for name in new if "__pycache__" not in name} == set()


def test_transcript_left_by_a_killed_run_is_not_that_of_a_row_without_one(new_project: NewProject) -> None:
    project = new_project(
        """
        def pytest_hillclimb_run_case(case, ctx):
            return {"output": "x"}


        def pytest_hillclimb_grade_case(case, run, ref, ctx):
            return True
        """
    )
    write_cases(project, 2)
    traces = project.flow / "baseline/traces"
    traces.mkdir(parents=True)
    (traces / "c0_rep0.json").write_text('[{"role": "assistant", "content": "of a run that was killed"}]')
    assert project.run().status == 0
    assert keys(project.rows()) == [("c0", 0), ("c1", 0)]
    assert list(traces.iterdir()) == []


def test_row_is_on_disk_while_a_fixture_of_a_later_item_sleeps(new_project: NewProject, slowness: Slowness) -> None:
    project = new_project(
        EVAL
        + """

@pytest.fixture(autouse=True)
def slow(request):
    if "c2" in request.node.nodeid:
        (HOME / "sleeping").touch()
        time.sleep(3)
        (HOME / "slept").touch()
"""
    )
    project.write_cases(*({"id": f"c{n}", "seconds": 0.3 * (n > 1)} for n in range(12)))
    session = project.start("--hillclimb-concurrency", "2")
    session.wait_until((project.root / "sleeping").exists)
    seen: dict[str, float] = {}
    results = project.flow / "baseline/results.jsonl"
    while not (project.root / "slept").exists():
        now = monotonic()
        for found in re.findall(r'"prompt_id":"(c\d+)"', results.read_text() if results.exists() else ""):
            seen.setdefault(found, now)
        sleep(0.01)
    done = session.end()
    assert done.status == 0, done.text
    assert len(project.rows()) == 12
    ended = {call.key[0]: call.ended for call in project.calls()}
    assert len(seen) >= 10
    late = {name: seen[name] - (ended[name] or 0) for name in seen if name not in ("c0", "c1")}
    assert max(late.values()) < 0.5 * slowness(), late


# --- what a run reads -------------------------------------------------------------------------------------------------


def test_torn_tails_are_isolated(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 4)
    variant = project.flow / "baseline"
    variant.mkdir(parents=True)
    results = '{"prompt_id":"c0","rep":0,"grade":{"pass":1}}\n{"prompt_id":"c1","rep":0,"grade":{"pa'
    errors = '{"prompt_id":"c2","rep":0,"failure_cl'
    (variant / "results.jsonl").write_text(results)
    (variant / "errors.jsonl").write_text(errors)
    done = project.run()
    assert done.status == 0, done.text
    assert (variant / "results.jsonl").read_text().startswith(f"{results}\n{{")
    assert (variant / "errors.jsonl").read_text() == f"{errors}\n"
    assert names(project) == ["c1", "c2", "c3"]
    assert project.run().status == 0
    assert (variant / "results.jsonl").read_text().count("\n") == 5
    assert len(project.calls()) == 3


def test_last_row_without_a_newline_counts(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 2)
    (project.flow / "baseline").mkdir(parents=True)
    (project.flow / "baseline/results.jsonl").write_text('{"prompt_id":"c0","rep":0,"grade":{"pass":1}}')
    assert project.run().status == 0
    assert names(project) == ["c1"]
    assert keys(project.rows()) == [("c0", 0), ("c1", 0)]


def test_rows_of_other_tools(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 9)
    (project.flow / "baseline").mkdir(parents=True)
    results = project.flow / "baseline/results.jsonl"
    lines = [
        '{"id":"c0","grade":{"pass":1}}',
        '{"case_id":"c1","rep":0,"grade":true}',
        '{"prompt_id":"c2","rep":0,"status":"error","grade":{"pass":1}}',
        '{"prompt_id":"c3","rep":0,"passed":false,"grade":{"other":1}}',
        '{"prompt_id":"c4","rep":1,"grade":{"pass":1}}',
        '{"prompt_id":"c5","rep":0,"status":"truncated","grade":0.5}',
        '{"prompt_id":"c6","rep":null,"grade":{"pass":0}}\r',
        '  {"prompt_id" : "c7", "rep" : 0.0}  ',
        "null",
        "[1]",
        "",
        "not JSON",
        '{"rep":0,"grade":1}',
    ]
    before = "\n".join([*lines, ""]).encode()
    results.write_bytes(before)
    done = project.run("-rA")
    assert done.status == 1, done.text
    assert names(project) == ["c2", "c4", "c8"]
    assert results.read_bytes().startswith(before)
    red = sorted(re.findall(r"^FAILED .*::(c\d)::rep0", done.text, re.MULTILINE))
    assert red == ["c3", "c6"]
    assert "7 passed" in done.text
    assert project.run().status == 1
    assert len(project.calls()) == 3


def test_recorded_verdicts_stay(new_project: NewProject) -> None:
    project = new_project(EVAL)
    project.write_cases({"id": "good"}, {"id": "bad", "miss": True})
    assert project.run().status == 1
    again = project.run("-rA")
    assert again.status == 1
    assert "1 failed, 1 passed" in again.text
    assert "recorded" in again.text
    assert "FAILED evals/catalog.json::bad::rep0" in again.text
    assert project.run("--hillclimb-fail-on", "error").status == 0
    assert len(project.calls()) == 2


def test_another_model_is_refused(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 2)
    assert project.run("--hillclimb-model", "m-1").status == 0
    before = snapshot(project.flow)
    for model in (["--hillclimb-model", "m-2"], []):
        project.run(*model).assert_refused("m-1", "baseline")
    assert snapshot(project.flow) == before
    assert len(project.calls()) == 2
    assert project.run("--hillclimb-variant", "v1", "--hillclimb-model", "m-2").status == 0
    assert project.run("--hillclimb-model", "m-1").status == 0


def test_run_file_that_cannot_be_read_is_refused(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 1)
    run_file = project.flow / "baseline/run.json"
    run_file.parent.mkdir(parents=True)
    for content in ("{", "[]", '{"model": NaN}'):
        run_file.write_text(content)
        project.run().assert_refused("run.json")
        assert run_file.read_text() == content
    assert project.calls() == []


def test_second_session_is_refused_while_the_first_runs(new_project: NewProject) -> None:
    project = new_project(EVAL)
    slots = write_cases(project, 4, seconds=2)
    first = project.start()
    project.wait_for_calls(first, 4)
    before = snapshot(project.flow)
    other = project.start("--hillclimb-variant", "v1")
    project.run().assert_refused(f"pid {first.pid}", os.uname().nodename, "baseline")
    assert {k: v for k, v in snapshot(project.flow).items() if k.startswith("baseline/")} == {
        k: v for k, v in before.items() if k.startswith("baseline/")
    }
    assert first.end().status == 0
    assert other.end().status == 0
    assert keys(project.rows()) == keys(project.rows("v1")) == slots
    assert len(project.calls()) == 8
    assert project.run().status == 0


def test_flow_elsewhere_is_given_in_one_word(new_project: NewProject, tmp_path: Path) -> None:
    """Apart, pytest takes the directory for a test path once it exists, and overlooks the project's ini file."""
    project = new_project(EVAL)
    write_cases(project, 2)
    flow = tmp_path / "elsewhere/flow"
    assert project.run("--hillclimb-flow", str(flow)).status == 0
    again = project.run("--hillclimb-flow", str(flow), approve=False)
    assert again.status == 4
    assert f"write --hillclimb-flow={flow} in one word" in again.text
    again = project.run(f"--hillclimb-flow={flow}", approve=False)
    assert again.status == 0, again.text
    assert len(project.calls()) == 2


# --- what a run never touches -----------------------------------------------------------------------------------------


STATE = """{
  "goal": {
    "target": "pass",
    "hold": []
  },
  "reps": 2,
  "words": "caf\u00e9 \u2028 \U0001f9d7 \\" \\\\ \\n",
  "numbers": [
    0.1,
    1e-07,
    12345678901234567890,
    -1.5,
    true,
    null
  ],
  "harness_sha": "%s",
  "best": {
    "round": 0,
    "test_score": 0.25
  }
}
"""


def test_state_is_kept_but_for_the_sha(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 1)
    project.flow.mkdir(parents=True)
    state = project.flow / "_state.json"
    state.write_text(STATE % ("0" * 64))
    project.run(approve=False).assert_refused("harness")
    assert state.read_text() == STATE % ("0" * 64)
    assert project.run().status == 0
    sha = json.loads(state.read_text())["harness_sha"]
    assert sha != "0" * 64
    assert state.read_text() == STATE % sha

    # Approved already: whatever the layout, nothing is written.
    compact = json.dumps(json.loads(state.read_text())).replace('"reps"', '\n\t"reps"')
    state.write_text(compact)
    before = snapshot(project.flow)["_state.json"]
    assert project.run("--hillclimb-variant", "v1").status == 0
    assert project.run("--hillclimb-variant", "v1", approve=False).status == 0
    assert snapshot(project.flow)["_state.json"] == before


def test_state_without_a_sha_gets_it_last(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 1)
    project.flow.mkdir(parents=True)
    state = project.flow / "_state.json"
    state.write_text('{\n  "z": 1,\n  "a": 2\n}\n')
    project.approve()
    assert re.fullmatch(r'\{\n  "z": 1,\n  "a": 2,\n  "harness_sha": "[0-9a-f]{64}"\n\}\n', state.read_text())


def test_fresh_never_touches_the_flow(new_project: NewProject) -> None:
    project = new_project(EVAL)
    project.write_cases({"id": "a"}, {"id": "b", "miss": True})
    assert project.run().status == 1
    before = snapshot(project.flow)
    for variant in ("baseline", "v1"):
        done = project.run("--hillclimb-fresh", "--hillclimb-variant", variant, "--hillclimb-model", "other")
        assert done.status == 1, done.text
        assert snapshot(project.flow) == before
        found = re.search(r"(\S*hillclimb-fresh-\S*results\.jsonl)", done.text)
        assert found is not None
        results = project.root / found[1]
        assert results.read_text().count("\n") == 2
        assert len(list((results.parent / "traces").iterdir())) == 2
    assert len(project.calls()) == 6


def test_looking_writes_nothing(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 2)
    project.approve()
    assert {path.name for path in project.flow.iterdir()} == {"_state.json"}
    before = snapshot(project.flow)
    for option in ("--hillclimb-plan", "--collect-only"):
        assert project.run(option, approve=False).status == 0
        assert snapshot(project.flow) == before
    assert project.run("--setup-plan").status == 0
    assert project.rows() == []
    assert project.calls() == []
