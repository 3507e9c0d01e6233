"""A disk that fails: no half row stays, nothing more is started, what was paid for is kept elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_project import NewProject, Project, contents, keys, words_after

EVAL = """
def pytest_hillclimb_run_case(case, ctx):
    spend("begin", case, ctx)
    time.sleep(0.05)
    if case.do == "fail":
        raise ValueError("x" * 700)
    run = {"output": case.id}
    match case.do:
        case "trace":
            run["transcript"] = [{"role": "assistant", "content": "x" * 30_000}]
        case "reference":
            run["output"] = "x" * 30_000
        case "artifact":
            page = ctx.attach("page.txt", "x" * 30_000)
            run["transcript"] = [{"role": "assistant", "content": "see the page", "attachments": [page]}]
    spend("end", case, ctx)
    return run


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    return True
"""

WIDTH = 2
TOO_LONG_S = 12.0
LATE = 3 * WIDTH  # calls that may begin before the writer has met the failure: in flight, and within a moment of it

LIMIT = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def limited(size: int) -> list[str]:
    """Return a wrapper under which files grow to *size* bytes and no further: the write fails, as on a full disk."""
    return [sys.executable, "-c", LIMIT, str(size)]


def write_cases(project: Project, number: int, do: str = "", prompt: int = 700) -> list[tuple[str, int]]:
    project.write_cases(*({"id": f"case-{n:03}", "prompt": "p" * prompt, "do": do} for n in range(number)))
    return [(f"case-{n:03}", 0) for n in range(number)]


def rescue_file(text: str) -> Path:
    found = re.search(r"(/\S+\.jsonl)", words_after("rescued", text))
    assert found is not None, text
    return Path(found[1])


def assert_no_noise(text: str) -> None:
    assert "INTERNALERROR" not in text
    assert "Traceback" not in text
    assert "Exception in thread" not in text


def test_failing_append_of_a_row(new_project: NewProject) -> None:
    project = new_project(EVAL)
    slots = write_cases(project, 60)
    done = project.run("--hillclimb-concurrency", str(WIDTH), "-rs", wrapper=limited(8192))
    assert done.status == 1, done.text
    assert_no_noise(done.text)
    written = project.rows()  # each line is whole
    assert len(written) in range(5, 12)
    rescued = project.rescued()
    assert rescued
    assert [rescue_file(done.text)] == list((project.root / "tmp").glob("*.jsonl"))
    # Each call has its row in one of the two, and no call was made once the failure was known.
    assert keys([*written, *rescued]) == sorted(call.key for call in project.calls())
    assert len(rescued) <= 1 + LATE
    assert not (project.flow / "baseline/errors.jsonl").exists()
    assert f"{60 - len(project.calls())} skipped" in done.text
    assert "SKIPPED" in done.text
    assert all("results.jsonl" in line for line in done.lines if line.startswith("SKIPPED"))

    before = project.flow.joinpath("baseline/results.jsonl").read_bytes()
    done = project.run()
    assert done.status == 0, done.text
    assert project.flow.joinpath("baseline/results.jsonl").read_bytes().startswith(before)
    assert keys(project.rows()) == slots
    calls = [call.key for call in project.calls()]
    # The rows that were rescued are for a person to add or to leave: these executions were run again, and only these.
    assert sorted({key for key in calls if calls.count(key) > 1}) == keys(rescued)


def test_failing_append_of_an_errors_row(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 60, do="fail")
    done = project.run("--hillclimb-concurrency", str(WIDTH), "--tb=no", "-q", wrapper=limited(8192))
    assert done.status == 1, done.text
    assert_no_noise(done.text)
    assert keys([*project.errors(), *project.rescued()]) == sorted(call.key for call in project.calls())
    assert 1 <= len(project.rescued()) <= 1 + LATE
    assert rescue_file(done.text).exists()


def test_temporary_directory_that_fails_too(new_project: NewProject) -> None:
    """Not every row can be kept then, but the run stops all the same, and ends."""
    project = new_project(EVAL)
    write_cases(project, 40, prompt=6000)
    done = project.run("--hillclimb-concurrency", str(WIDTH), wrapper=limited(8192), within=TOO_LONG_S)
    assert done.status == 1, done.text
    assert_no_noise(done.text)
    assert len(project.rows()) == 1
    assert len(project.calls()) <= 2 + LATE
    assert "results.jsonl" in words_after("stopped", done.text)


def test_torn_tail_that_cannot_be_closed(new_project: NewProject) -> None:
    project = new_project(EVAL)
    write_cases(project, 3)
    (project.flow / "baseline").mkdir(parents=True)
    torn = project.flow / "baseline/results.jsonl"
    torn.write_bytes(b'{"prompt_id":"gone","rep":0}\n' * 300 + b'{"prompt_id":"case-0')
    before = torn.read_bytes()
    project.run(wrapper=limited(len(before))).assert_refused("results.jsonl")
    assert torn.read_bytes() == before
    assert project.calls() == []


def test_traces_that_cannot_be_written(new_project: NewProject) -> None:
    project = new_project(EVAL)
    project.write_cases({"id": "large", "do": "trace"}, {"id": "small", "do": ""})
    done = project.run(wrapper=limited(8192))
    assert done.status == 0, done.text
    assert "2 passed" in done.text
    assert keys(project.rows()) == [("large", 0), ("small", 0)]
    assert project.errors() == []
    marks = {row["prompt_id"]: row.get("meta", {}).get("trace_error") for row in project.rows()}
    assert marks["small"] is None
    assert "File too large" in marks["large"]
    warnings = [line for line in done.lines if line.startswith("warning")]
    assert len(warnings) == 1
    assert "large rep0" in warnings[0]
    assert list((project.flow / "baseline/traces").iterdir()) == []
    assert len(project.calls()) == 2


@pytest.mark.parametrize("what", ["reference", "artifact"])
def test_reference_or_artifact_that_cannot_be_written(new_project: NewProject, what: str) -> None:
    project = new_project(EVAL)
    project.write_cases({"id": "large", "do": what}, {"id": "small", "do": ""})
    done = project.run(wrapper=limited(8192))
    assert done.status == 0, done.text
    assert keys(project.rows()) == [("large", 0), ("small", 0)]
    assert project.errors() == []
    warnings = [line for line in done.lines if line.startswith("warning")]
    assert len(warnings) == 1
    assert "large rep0" in warnings[0]
    assert what in warnings[0]
    left = {name for name in contents(project.flow) if name.startswith(("baseline/ref/", "baseline/out/large_rep0/"))}
    assert left == {"baseline/ref/small"} | ({"baseline/ref/large"} if what == "artifact" else set())


# --- a real disk that is full -----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if mount is None or unmount is None:
        pytest.skip("needs mount")
    command = [mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run([unmount, "-l", str(place)], check=True)


def test_full_disk(new_project: NewProject, small_disk: Path) -> None:
    project = new_project(EVAL)
    slots = write_cases(project, 60)
    project.flow = small_disk / "flow"
    options = [f"--hillclimb-flow={project.flow}", "--hillclimb-concurrency", str(WIDTH)]
    project.run("--hillclimb-plan", *options)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * _free(small_disk, but=60_000))
    done = project.run(*options)
    assert done.status == 1, done.text
    assert_no_noise(done.text)
    assert project.rescued()
    assert rescue_file(done.text).exists()
    assert keys([*project.rows(), *project.rescued()]) == sorted(call.key for call in project.calls())
    assert len(project.rescued()) <= 1 + LATE
    assert not (project.flow / "baseline/errors.jsonl").exists()
    rescued = keys(project.rescued())

    filler.write_bytes(b"")
    project.write_cases(*({"id": name, "prompt": "p", "do": ""} for name, _ in slots))
    done = project.run(*options)
    assert done.status == 0, done.text
    assert keys(project.rows()) == slots
    calls = [call.key for call in project.calls()]
    assert sorted({key for key in calls if calls.count(key) > 1}) == rescued


def test_full_disk_that_holds_the_temporary_directory_too(new_project: NewProject, small_disk: Path) -> None:
    project = new_project(EVAL)
    write_cases(project, 60)
    project.flow = small_disk / "flow"
    temporary = small_disk / "tmp"
    temporary.mkdir()
    options = [f"--hillclimb-flow={project.flow}", "--hillclimb-concurrency", str(WIDTH)]
    project.run("--hillclimb-plan", *options)
    (small_disk / "filler").write_bytes(b"x" * _free(small_disk, but=60_000))
    done = project.run(*options, within=TOO_LONG_S, TMPDIR=str(temporary))
    assert done.status == 1, done.text
    assert_no_noise(done.text)
    assert len(project.calls()) <= len(project.rows()) + 1 + LATE
    assert words_after("stopped", done.text)


def _free(disk: Path, *, but: int) -> int:
    return shutil.disk_usage(disk).free - but
