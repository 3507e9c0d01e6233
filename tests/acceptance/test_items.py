"""Executions as pytest items: named, selected, skipped, ordered, timed and surrounded by fixtures like any other."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from eval_project import HOOKS, Project, reports

THREE = (
    {"id": "final-response"},
    {"id": "opening hours", "tags": ["facts", "week-end"]},
    {"id": "off", "grade": False},
)


def shown_ids(result: pytest.RunResult) -> list[str]:
    return [line.split(" ")[0] for line in result.outlines if re.match(r"\S+::\S+( |$)", line)]


@pytest.fixture
def ready(project: Project) -> Project:
    """Set up an eval that is approved."""
    project.cases(*THREE)
    project.approved("--collect-only")
    return project


def again(project: Project) -> None:
    """Approve what the test has changed."""
    assert project.approved("--collect-only", "-q").ret == 0


# --- names and selection ----------------------------------------------------------------------------------------------


def test_node_ids(ready: Project) -> None:
    result = ready.run("--collect-only", "-q", "--hillclimb-reps=2")
    assert result.ret == 0
    safe = [f"evals/catalog.json::{row}" for row in ("final-response", "", "off")]
    ids = shown_ids(result)
    assert ids[:2] == [f"{safe[0]}::rep0", f"{safe[0]}::rep1"]
    assert ids[4:] == [f"{safe[2]}::rep0", f"{safe[2]}::rep1"]
    assert re.fullmatch(r"evals/catalog\.json::opening_hours-[0-9a-f]{8}::rep0", ids[2])
    assert ready.run(*ids[2:4], "--hillclimb-reps=2").parseoutcomes() == {"passed": 2}
    ready.run(ids[2].rsplit("::", 1)[0], "--hillclimb-reps=2", "--hillclimb-fresh").assert_outcomes(passed=2)


def test_node_ids_hold_only_characters_that_pytest_can_find_again(project: Project) -> None:
    names = ["a[b]", "a::b", "a/b", "caf\u00e9", "a b", "-x", "x" * 300, "a\nb", "'q'", "\U0001f600"]
    project.cases(*({"id": name} for name in names))
    again(project)
    ids = shown_ids(project.run("--collect-only", "-q"))
    assert len(ids) == len(names)
    assert all(re.fullmatch(r"evals/catalog\.json::[A-Za-z0-9._-]+::rep0", node) for node in ids)
    result = project.run(*ids)
    assert result.ret == 0
    assert {row["meta"]["original_id"] for row in project.rows() if "meta" in row} == {n for n in names if n != "-x"}


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("final-response", 1),
        ("final", 1),
        ("FINAL-RESPONSE", 1),
        ("facts", 1),
        ("week-end", 1),
        ("not facts", 2),
        ("final-response or off", 2),
        ("opening", 1),
        ("rep0", 3),
        ("catalog", 3),
        ("hillclimb", 3),
    ],
)
def test_keywords(ready: Project, expression: str, count: int) -> None:
    result = ready.run("-k", expression, "--collect-only", "-q")
    assert len(shown_ids(result)) == count


def test_deselect_and_ignore(ready: Project) -> None:
    result = ready.run("--deselect", "evals/catalog.json::off", "--hillclimb-reps=2")
    assert result.parseoutcomes() == {"passed": 4, "deselected": 2}
    assert ready.run("--ignore", "evals/catalog.json").ret == 5


def test_collect_only_calls_nothing_and_writes_nothing(project: Project) -> None:
    project.cases(*THREE)
    before = project.files()
    result = project.run("--collect-only")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*catalog.json*", "*final-response*", "*rep0*"])
    assert "not checked" in result.stdout.str()
    assert project.files() == before
    assert not project.spent()
    assert not (project.path / ".claude").exists()


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
def test_setups_without_calls(ready: Project, option: str) -> None:
    result = ready.run(option)
    assert result.ret == 0
    assert not ready.spent()
    assert not ready.rows()


def test_last_failed_and_failed_first(ready: Project) -> None:
    ready.cases({"id": "a"}, {"id": "off", "grade": False}, {"id": "broken", "raises": "x"}, {"id": "z"})
    again(ready)
    assert ready.run().ret == 1
    spent = len(ready.spent())
    result = ready.run("--lf", "-v")
    assert result.parseoutcomes() == {"failed": 1, "errors": 1} or result.parseoutcomes()["deselected"] == 2
    assert shown_ids(result)[:2] == ["evals/catalog.json::off::rep0", "evals/catalog.json::broken::rep0"]
    assert ready.spent()[spent:] == ["broken rep0"]  # what was scored is not paid again
    result = ready.run("--ff", "-v")
    wanted = [f"evals/catalog.json::{name}::rep0" for name in ("off", "broken", "a", "z")]
    assert shown_ids(result)[:4] == wanted
    assert ready.spent()[spent:] == ["broken rep0"] * 2


def test_last_failed_after_a_miss_that_is_not_red(ready: Project) -> None:
    assert ready.run("--hillclimb-fail-on=error").ret == 0
    result = ready.run("--lf", "--hillclimb-fail-on=error")
    assert result.parseoutcomes() == {"passed": 2, "missed": 1}


@pytest.mark.parametrize(("option", "reds"), [("-x", 1), ("--maxfail=2", 2), ("--exitfirst", 1)])
def test_stopping_at_a_failure_pays_for_what_is_in_flight_at_most(ready: Project, option: str, reds: int) -> None:
    off = [{"id": f"off{i}", "grade": False} for i in range(reds)]
    ready.cases(*off, *({"id": f"c{i}", "sleep": 0.15} for i in range(20)))
    again(ready)
    result = ready.run(option, "--hillclimb-concurrency=3")
    assert result.ret == 1
    assert f"stopping after {reds} failures" in result.stdout.str()
    assert len(ready.spent()) <= reds + 3
    assert len(ready.rows()) == len(ready.spent())  # what was in flight is recorded
    result.stdout.fnmatch_lines(["not tried *"])


def test_stop_at_the_first_failure_of_many(ready: Project) -> None:
    ready.cases({"id": "broken", "raises": "x"}, *({"id": f"c{i}"} for i in range(10)))
    again(ready)
    result = ready.run("-x", "--hillclimb-concurrency=1")
    assert result.ret == 1
    assert ready.spent() == ["broken rep0"]


def test_stepwise(ready: Project) -> None:
    ready.cases({"id": "a"}, {"id": "b", "breaks_until": "mended"}, {"id": "c"}, {"id": "d"})
    again(ready)
    assert ready.run("--stepwise", "--hillclimb-concurrency=1").ret in (1, 2)
    assert ready.spent() == ["a rep0", "b rep0"]
    ready.write("mended", "")
    result = ready.run("--stepwise", "--hillclimb-concurrency=1")
    assert result.parseoutcomes() == {"passed": 3, "deselected": 1}
    assert ready.spent() == ["a rep0", "b rep0", "b rep0", "c rep0", "d rep0"]


# --- what reports say -------------------------------------------------------------------------------------------------


def test_durations_are_those_of_the_trials(ready: Project) -> None:
    ready.cases({"id": "slow", "sleep": 0.4}, {"id": "quick"}, {"id": "later", "sleep": 0.3})
    again(ready)
    result = ready.run("--durations=2", "--durations-min=0.1")
    result.stdout.re_match_lines(
        [r"0\.4\ds call +evals/catalog\.json::slow::rep0", r"0\.3\ds call +evals/catalog\.json::later::rep0"]
    )
    times = {name: report.duration for name, report in reports(result).items()}
    assert 0.4 <= times["slow::rep0"] < 0.5
    assert 0.3 <= times["later::rep0"] < 0.4
    assert times["quick::rep0"] < 0.2


def test_the_words_of_verbose(ready: Project) -> None:
    ready.cases(
        {"id": "a"}, {"id": "off", "grade": 0 == 1}, {"id": "broken", "raises": "x"}, {"id": "out", "skips": "not here"}
    )
    again(ready)
    result = ready.run("-v")
    result.stdout.fnmatch_lines(
        [
            "evals/catalog.json::a::rep0 PASSED *",
            "evals/catalog.json::off::rep0 FAILED *",
            "evals/catalog.json::broken::rep0 ERROR *",
            "evals/catalog.json::out::rep0 SKIPPED (not here) *",
        ]
    )
    ready.run("-rs").stdout.re_match_lines(r"SKIPPED \[1\] evals/catalog\.json.*: not here")


def test_junit(ready: Project) -> None:
    ready.cases(
        {"id": "a", "sleep": 0.2, "grade": {"pass": 1, "tone": 0.5}, "usage": {"input_tokens": 3}, "model": "m-1"},
        {"id": "off", "grade": False, "prompt": "the <question>", "says": "the answer"},
        {"id": "broken", "raises": "it fell over"},
        {"id": "out", "skips": "not here"},
    )
    again(ready)
    ready.run("--junitxml=junit.xml")
    suite = next(ElementTree.parse(ready.path / "junit.xml").iter("testsuite"))
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    cases = {case.get("classname", "") + "/" + case.get("name", ""): case for case in suite.iter("testcase")}
    assert len(cases) == 4
    named = {name: case for case in cases.values() for name in ("a", "off", "broken", "out") if name in _place(case)}
    assert 0.2 <= float(named["a"].get("time", "0")) < 0.4
    assert [[child.tag for child in named[n] if child.tag != "properties"] for n in ("a", "off", "broken", "out")] == [
        [],
        ["failure"],
        ["error"],
        ["skipped"],
    ]
    assert "the <question>" in (named["off"][-1].text or "")
    assert "the answer" in (named["off"][-1].text or "")
    assert "it fell over" in (named["broken"][-1].text or "") + (named["broken"][-1].get("message") or "")
    assert named["out"][-1].get("message") == "not here"
    properties = _properties(named["a"])
    assert properties["hillclimb.grade.pass"] == "1"
    assert properties["hillclimb.grade.tone"] == "0.5"
    assert properties["hillclimb.input_tokens"] == "3"
    assert properties["hillclimb.model"] == "m-1"
    assert 0.2 <= float(properties["hillclimb.latency_s"]) < 0.4
    assert _properties(named["broken"])["hillclimb.failure_class"] == "error"

    ready.run("--junitxml=again.xml")
    cases_again = ElementTree.parse(ready.path / "again.xml").iter("testcase")
    recorded = [_properties(case).get("hillclimb.recorded") for case in cases_again]
    assert recorded == ["true", "true", None, None]


def _place(case: ElementTree.Element) -> list[str]:
    return f"{case.get('classname')}.{case.get('name')}".split(".")


def _properties(case: ElementTree.Element) -> dict[str, str]:
    return {node.get("name", ""): node.get("value", "") for node in case.iter("property")}


def test_reasons_of_skips_are_one_safe_line(ready: Project) -> None:
    ready.cases({"id": "out", "skips": "two\nlines \u001b[2Jof it"})
    again(ready)
    result = ready.run("-rs")
    assert "\x1b" not in result.stdout.str()
    assert [line for line in result.outlines if line.startswith("SKIPPED")]


# --- marks ------------------------------------------------------------------------------------------------------------

MARKS = """
import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        for name, mark in {
            "skipped": pytest.mark.skip(reason="not today"),
            "skippedif": pytest.mark.skipif(True, reason="not here"),
            "text": pytest.mark.skipif("sys.version_info > (3,)", reason="as text"),
            "runs": pytest.mark.skipif(False, reason="never"),
            "norun": pytest.mark.xfail(run=False, reason="hopeless"),
            "norunif": pytest.mark.xfail(True, run=False, reason="hopeless here"),
            "known": pytest.mark.xfail(reason="known"),
            "fixed": pytest.mark.xfail(reason="was known"),
            "strict": pytest.mark.xfail(strict=True, reason="was known"),
            "falls": pytest.mark.xfail(reason="falls over"),
            "notx": pytest.mark.xfail(False, reason="not this time"),
        }.items():
            if f"::{name}::" in item.nodeid:
                item.add_marker(mark)
"""


@pytest.mark.parametrize("catalog", ["catalog.json", "catalog.yaml"])
def test_marks_that_a_conftest_sets(ready: Project, catalog: str) -> None:
    off = {"grade": False}
    (ready.path / "evals/catalog.json").unlink()
    ready.cases(
        {"id": "plain"},
        {"id": "skipped"},
        {"id": "skippedif"},
        {"id": "text"},
        {"id": "runs"},
        {"id": "norun"},
        {"id": "norunif"},
        {"id": "known", **off},
        {"id": "fixed"},
        {"id": "strict"},
        {"id": "falls", "raises": "x"},
        {"id": "notx", **off},
        file=f"evals/{catalog}",
    )
    ready.write("conftest.py", MARKS)
    again(ready)
    result = ready.run()
    assert result.ret == 1
    shown = [line.split()[1] for line in result.outlines if line.startswith("evals/catalog.")]
    assert shown == [".sss.xxxXFxF"]
    wanted = {"plain", "runs", "known", "fixed", "strict", "falls", "notx"}
    assert {call.split()[0] for call in ready.spent()} == wanted
    assert {row["prompt_id"] for row in ready.rows()} == wanted - {"falls"}
    # A mark changes what pytest says of a row, not the row.
    result = ready.run()
    assert [line.split()[1] for line in result.outlines if line.startswith("evals/catalog.")] == shown


def test_a_skip_decided_by_a_fixture_runs_nothing_more(ready: Project) -> None:
    ready.write(
        "conftest.py",
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef gate(request):\n    pytest.skip('no access')\n",
    )
    again(ready)
    result = ready.run("--hillclimb-concurrency=1")
    assert result.parseoutcomes() == {"skipped": 3}
    assert not ready.spent()


# --- fixtures ---------------------------------------------------------------------------------------------------------

FIXTURES = """
from pathlib import Path

import pytest

LOG = Path(__file__).parent / "order.log"


def note(word):
    with open(LOG, "a") as file:
        file.write(word + "\\n")


def spent():
    log = Path(__file__).parent / "spend.log"
    return len(log.read_text().splitlines()) // 2 if log.exists() else 0


def make(scope):
    @pytest.fixture(autouse=True, scope=scope, name=f"around_{scope}")
    def around(request):
        note(f"+{scope} {request.node.nodeid or '.'} {spent()}")
        yield
        note(f"-{scope} {request.node.nodeid or '.'} {spent()}")

    return around


around_session = make("session")
around_package = make("package")
around_module = make("module")
around_class = make("class")
around_function = make("function")
"""


def test_fixtures_of_every_scope_stand_around_the_calls(ready: Project) -> None:
    ready.cases({"id": "a", "sleep": 0.05}, {"id": "b"}, file="evals/catalog.json")
    ready.cases({"id": "c"}, {"id": "d"}, file="evals/sub/catalog.json")
    ready.write("conftest.py", FIXTURES)
    again(ready)
    (ready.path / "order.log").unlink(missing_ok=True)
    assert ready.run().ret == 0
    log = (ready.path / "order.log").read_text().splitlines()
    assert log[0] == "+session . 0"
    assert log[-1] == "-session . 4"
    words = [line.split()[0] for line in log]
    assert words.count("+function") == words.count("-function") == 4
    assert words.count("+module") == words.count("-module") == 2
    # The calls of a catalog begin after the module fixture's set-up, and have ended before its tear-down.
    assert "+module evals/catalog.json 0" in log
    assert "-module evals/catalog.json 2" in log
    assert "+module evals/sub/catalog.json 2" in log
    assert "-module evals/sub/catalog.json 4" in log
    first = next(line for line in log if line.startswith("+function"))
    assert first.endswith(" 0")
    assert log.index(first) > log.index("+module evals/catalog.json 0")


def test_a_module_fixture_may_start_the_app(ready: Project) -> None:
    ready.write(
        "evals/conftest.py",
        HOOKS.replace("    act(case)\n", "    assert (ROOT / 'up').exists()\n    act(case)\n")
        + "\n\n@pytest.fixture(scope='module', autouse=True)\ndef app():\n    time.sleep(0.1)\n"
        "    (ROOT / 'up').touch()\n    yield\n    (ROOT / 'up').unlink()\n",
    )
    ready.cases(*({"id": f"c{i}"} for i in range(8)))
    ready.cases(*({"id": f"d{i}"} for i in range(8)), file="evals/sub/catalog.json")
    again(ready)
    assert ready.run().parseoutcomes() == {"passed": 16}


def test_the_fixtures_of_pytest_itself(ready: Project) -> None:
    ready.write(
        "conftest.py",
        "import pytest\n\n\n@pytest.fixture(autouse=True)\n"
        "def common(request, tmp_path, monkeypatch, caplog, capsys, recwarn, record_property, cache, pytestconfig):\n"
        "    assert request.node.name == 'rep0'\n"
        "    assert request.node.get_closest_marker('hillclimb')\n"
        "    assert request.path.name == 'catalog.json'\n"
        "    assert request.module is None and request.cls is None\n"
        "    record_property('mine', tmp_path.is_dir())\n    yield\n",
    )
    again(ready)
    result = ready.run()
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    for report in reports(result).values():
        assert ("mine", True) in report.user_properties


def test_usefixtures_from_a_conftest_and_from_the_ini_file(ready: Project) -> None:
    ready.ini(hillclimb_enabled="true", usefixtures="wanted")
    ready.write(
        "conftest.py", "import pytest\n\n\n@pytest.fixture\ndef wanted():\n    open('wanted', 'a').write('.')\n"
    )
    again(ready)
    ready.run()
    assert (ready.path / "wanted").read_text() == "..."


@pytest.mark.parametrize("scope", ["session", "module", "function"])
def test_a_set_up_that_fails_costs_no_call(ready: Project, scope: str) -> None:
    ready.write(
        "conftest.py",
        f"import pytest\n\n\n@pytest.fixture(autouse=True, scope={scope!r})\n"
        "def broken():\n    raise OSError('no app')\n",
    )
    again(ready)
    result = ready.run()
    assert result.parseoutcomes() == {"errors": 3}
    assert not ready.spent()
    assert not ready.rows()
    assert not ready.errors()


def test_a_tear_down_that_fails_is_an_error_beside_the_result(ready: Project) -> None:
    ready.write(
        "conftest.py",
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef broken():\n    yield\n    raise OSError('stuck')\n",
    )
    again(ready)
    result = ready.run()
    assert result.parseoutcomes() == {"passed": 2, "failed": 1, "errors": 3}
    assert len(ready.rows()) == 3


def test_hooks_of_a_conftest_see_each_execution_once(ready: Project) -> None:
    ready.write(
        "conftest.py",
        "def note(word, item):\n    open('seen', 'a').write(f'{word} {item.nodeid}\\n')\n\n\n"
        "def pytest_runtest_setup(item):\n    note('setup', item)\n\n\n"
        "def pytest_runtest_call(item):\n    note('call', item)\n\n\n"
        "def pytest_runtest_teardown(item):\n    note('teardown', item)\n",
    )
    again(ready)
    ready.run()
    seen = (ready.path / "seen").read_text().splitlines()
    assert len(seen) == 9
    assert [line.split()[0] for line in seen] == ["setup", "call", "teardown"] * 3


# --- together with other tests ----------------------------------------------------------------------------------------


def test_ordinary_tests_and_evals_in_one_session(ready: Project) -> None:
    ready.ini(hillclimb_enabled="true", testpaths="tests")
    ready.write("tests/test_a.py", "import os\n\n\ndef test_early():\n    assert not os.path.exists('spend.log')\n")
    ready.write(
        "evals/test_late.py",
        "def test_late():\n    lines = open('spend.log').readlines()\n    assert len(lines) == 6\n",
    )
    ready.write("evals/test_bad.py", "def test_bad():\n    assert 0, 'an ordinary failure'\n")
    again(ready)
    result = ready.run("-v", "tests", "evals")
    assert result.parseoutcomes() == {"passed": 4, "failed": 2}
    result.stdout.fnmatch_lines(
        ["tests/test_a.py::test_early PASSED*", "evals/catalog.json::final-response::rep0 PASSED*"]
    )
    assert "an ordinary failure" in result.stdout.str()
    assert ready.run("-k", "test_late").ret == 0


def test_executions_interleaved_with_ordinary_tests(ready: Project) -> None:
    ready.write("tests/test_a.py", "def test_one():\n    pass\n\n\ndef test_two():\n    pass\n")
    ready.write(
        "conftest.py",
        "def pytest_collection_modifyitems(items):\n"
        "    if len(items) == 5:\n        items[:] = [items[0], items[3], items[2], items[4], items[1]]\n",
    )
    again(ready)
    result = ready.run("evals", "tests")
    assert result.parseoutcomes() == {"passed": 4, "failed": 1}
    assert len(ready.spent()) == 3
    assert len(ready.rows()) == 3


def test_a_failure_to_import_a_test_stops_before_any_call(ready: Project) -> None:
    ready.write("evals/test_bad.py", "import nothing_of_this_name\n")
    again_result = ready.approved("--collect-only")
    assert again_result.ret == 2
    result = ready.run()
    assert result.ret == 2
    assert not ready.spent()
    assert ready.run("--continue-on-collection-errors").ret == 1
    assert len(ready.spent()) == 3


def test_an_item_that_is_run_twice_is_paid_once(ready: Project) -> None:
    ready.write(
        "conftest.py",
        "def pytest_runtest_protocol(item, nextitem):\n    from pytest import Item\n"
        "    for _ in range(2):\n"
        "        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)\n"
        "        from _pytest.runner import runtestprotocol\n"
        "        item._initrequest()\n"
        "        runtestprotocol(item, nextitem=nextitem, log=True)\n    return True\n",
    )
    again(ready)
    result = ready.run("-p", "no:randomly")
    assert result.parseoutcomes()["passed"] == 4
    assert len(ready.spent()) == 3
    assert len(ready.rows()) == 3


@pytest.mark.parametrize(
    "args",
    [
        ["evals", "evals"],
        ["evals", "evals/catalog.json"],
        ["evals/catalog.json::off", "evals/catalog.json::off::rep0", "evals"],
        ["--keep-duplicates", "evals", "evals"],
    ],
    ids=" ".join,
)
def test_naming_an_execution_twice_pays_it_once(ready: Project, args: list[str]) -> None:
    ready.run(*args)
    assert ready.spent()
    assert len(ready.spent()) == len(ready.rows()) == len(set(ready.slots()))


def test_an_eval_that_is_a_package(ready: Project) -> None:
    ready.write("evals/__init__.py", "")
    ready.write("evals/grading.py", "def judge(case):\n    return case.id != 'off'\n")
    text = HOOKS.replace('case.model_extra.get("grade", True)', "judge(case)")
    ready.write("evals/conftest.py", "from .grading import judge\n" + text)
    ready.write("conftest.py", FIXTURES)
    again(ready)
    assert ready.run().parseoutcomes() == {"passed": 2, "failed": 1}
    assert "+package" in (ready.path / "order.log").read_text()


# --- without parts of pytest, and quiet -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ["-p", "no:cacheprovider"],
        ["-p", "no:terminal"],
        ["-p", "no:logging"],
        ["-p", "no:capture"],
        ["-p", "no:junitxml"],
        ["-p", "no:skipping"],
        ["-p", "no:warnings"],
        ["-p", "no:unraisableexception", "-p", "no:threadexception"],
        ["-p", "no:faulthandler"],
        ["-p", "no:xdist"],
        ["-p", "no:tmpdir"],
        ["-s"],
        ["--capture=sys"],
        ["--capture=tee-sys"],
        ["--capture=fd"],
        ["--import-mode=importlib"],
        ["--tb=no"],
        ["--tb=long"],
        ["--tb=native"],
        ["--tb=line"],
        ["--tb=short"],
        ["-q"],
        ["-qq"],
        ["-qqq"],
        ["-vv"],
        ["--no-header", "--no-summary"],
        ["--show-capture=no"],
        ["--color=yes"],
        ["-W", "error"],
        ["-o", "console_output_style=times"],
        ["-o", "log_cli=true"],
        ["-o", "log_level=DEBUG"],
        ["-o", "junit_logging=all", "--junitxml=x.xml"],
        ["--strict-markers", "--strict-config"],
        ["-rA"],
        ["--cache-clear"],
        ["--full-trace"],
        ["-l"],
    ],
    ids=" ".join,
)
def test_a_run_is_the_same_whatever_else_is_asked_of_pytest(project: Project, args: list[str]) -> None:
    project.cases(
        {"id": "a", "prints": ["x"], "logs": ["y"]}, {"id": "off", "grade": False}, {"id": "b", "raises": "z"}
    )
    result = project.approved(*args)
    assert result.ret == 1
    assert project.slots() == [("a", 0), ("off", 0)]
    assert [row["prompt_id"] for row in project.errors()] == ["b"]
    shown = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in shown
    assert "Traceback" not in shown
    assert "pytest_hillclimb/" not in shown.replace("\\", "/")


def test_no_traceback_for_what_is_a_result(ready: Project) -> None:
    ready.cases({"id": "off", "grade": False, "prompt": "how are you", "says": "well"}, {"id": "b", "raises": "x"})
    again(ready)
    shown = ready.run("--tb=short").stdout.str()
    assert "Traceback" not in shown
    assert "how are you" in shown
    assert "well" in shown
    shown = ready.run("--tb=no", "--hillclimb-fresh").stdout.str()
    assert "how are you" not in shown
    assert "FAILED evals/catalog.json::off::rep0" in shown


def test_pdb_does_not_open_for_a_miss_that_is_not_red(ready: Project) -> None:
    result = ready.run("--pdb", "--pdbcls=nowhere:Nothing", "--hillclimb-fail-on=error")
    assert result.ret == 0
