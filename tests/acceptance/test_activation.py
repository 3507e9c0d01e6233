"""Whether a session runs evals: by an option, by the ini file, by a path on the command line, and else not."""

from __future__ import annotations

import pytest
from eval_project import APPROVE, INI, Project, refused

ALONE = "hillclimb: 1 catalog left alone"


@pytest.fixture
def mixed(project: Project) -> Project:
    """Set up an eval beside unit tests, in a repository whose bare ``pytest`` runs the latter."""
    project.cases({"id": "a"}, {"id": "b"})
    project.ini()
    project.write("tests/test_unit.py", "def test_unit():\n    pass\n")
    project.write("evals/test_beside.py", "def test_beside():\n    pass\n")
    return project


def alone_lines(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "hillclimb:" in line]


def test_a_bare_session_leaves_evals_alone_and_says_so_in_one_line(mixed: Project) -> None:
    before = mixed.files()
    result = mixed.run()
    assert result.ret == 0
    result.assert_outcomes(passed=2)
    [line] = alone_lines(result)
    assert line.startswith(ALONE)
    assert "--hillclimb" in line
    assert mixed.files() == before
    assert not mixed.spent()


def test_the_line_counts_catalogs_and_hooks_that_give_cases(mixed: Project) -> None:
    mixed.cases({"id": "c"}, file="evals/sub/catalog.json")
    mixed.write("evals/more/conftest.py", "def pytest_hillclimb_load_cases(config):\n    return [{'id': 'd'}]\n")
    mixed.cases({"id": "e"}, file="no_eval/catalog.json")
    [line] = alone_lines(mixed.run())
    assert line.startswith("hillclimb: 3 catalogs left alone")


@pytest.mark.parametrize("args", [["tests"], ["tests/test_unit.py"], ["evals/test_beside.py::test_beside"]])
def test_paths_that_name_no_eval_stay_silent(mixed: Project, args: list[str]) -> None:
    result = mixed.run(*args)
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    assert not alone_lines(result)
    assert not mixed.spent()


def test_the_directory_above_an_eval_does_not_name_it(mixed: Project) -> None:
    result = mixed.run(".")
    result.assert_outcomes(passed=2)
    assert len(alone_lines(result)) == 1
    assert not mixed.spent()


@pytest.mark.parametrize(
    "args",
    [
        ["--hillclimb"],
        ["--hillclimb-variant", "baseline"],
        ["--hillclimb-variant=v2"],
        ["--hillclimb-reps", "1"],
        ["--hillclimb-concurrency", "1"],
        ["--hillclimb-timeout", "0"],
        ["--hillclimb-fail-on", "error"],
        ["--hillclimb-limit", "2"],
        ["--hillclimb-case", "a", "--hillclimb-case", "b"],
        ["--hillclimb-fresh"],
        ["--hillclimb-flow", "elsewhere"],
        [],
    ],
)
def test_an_option_collects_hillclimb_paths_instead_of_testpaths(mixed: Project, args: list[str]) -> None:
    mixed.ini(testpaths="tests")
    result = mixed.run(APPROVE, *args)
    assert result.ret == 0
    result.assert_outcomes(passed=3)  # two executions, and the ordinary test beside them
    assert sorted(mixed.spent()) == ["a rep0", "b rep0"]


def test_an_option_without_hillclimb_paths_collects_what_pytest_would(mixed: Project) -> None:
    mixed.write("pytest.ini", "[pytest]\n")
    result = mixed.run(APPROVE, "--hillclimb")
    result.assert_outcomes(passed=4)


def test_the_ini_key_adds_evals_to_the_tests(mixed: Project) -> None:
    mixed.ini(hillclimb_enabled="true", testpaths="tests")
    mixed.approved("--collect-only")
    result = mixed.run("-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["tests/test_unit.py::test_unit *", "evals/catalog.json::a::rep0 *"])


def test_the_ini_key_collects_nothing_twice(mixed: Project) -> None:
    wanted = {"evals/catalog.json::a::rep0", "evals/catalog.json::b::rep0", "tests/test_unit.py::test_unit"}
    for testpaths in ("evals tests", "tests evals", "evals/catalog.json tests", "tests ev*"):
        mixed.ini(hillclimb_enabled="true", testpaths=testpaths)
        ids = [line for line in mixed.run("--collect-only", "-q").outlines if "::" in line]
        assert len(ids) == len(set(ids)), (testpaths, ids)
        assert wanted <= set(ids), testpaths


@pytest.mark.parametrize("testpaths", [".", "./tests", "te*ts", "**/tests", "nowhere"])
def test_testpaths_may_be_whatever_pytest_takes(mixed: Project, testpaths: str) -> None:
    mixed.ini(hillclimb_enabled="true", testpaths=testpaths)
    ids = [line for line in mixed.run("--collect-only", "-q").outlines if "::" in line]
    assert sorted(ids).count("tests/test_unit.py::test_unit") == 1
    assert ids.count("evals/catalog.json::a::rep0") == 1


def test_testpaths_may_be_absolute(mixed: Project) -> None:
    mixed.ini(hillclimb_enabled="true", testpaths=mixed.path / "tests")
    ids = [line for line in mixed.run("--collect-only", "-q").outlines if "::" in line]
    assert {"evals/catalog.json::a::rep0", "tests/test_unit.py::test_unit"} <= set(ids)


def test_the_ini_key_leaves_a_session_alone_that_names_other_paths(mixed: Project) -> None:
    mixed.ini(hillclimb_enabled="true")
    result = mixed.run("tests/test_unit.py")  # not approved, and need not be
    assert result.ret == 0
    assert not alone_lines(result)
    assert refused(mixed.run("tests", "evals"))


def test_the_ini_key_off_and_no_option_is_off(mixed: Project) -> None:
    mixed.ini(hillclimb_enabled="false", hillclimb_reps="3", hillclimb_variant="v2")
    result = mixed.run()
    result.assert_outcomes(passed=2)
    assert not mixed.spent()


@pytest.mark.parametrize(
    ("args", "count"),
    [
        (["evals"], 3),
        (["evals/"], 3),
        (["./evals"], 3),
        (["evals/catalog.json"], 2),
        (["evals/catalog.json::a"], 1),
        (["evals/catalog.json::a::rep0"], 1),
        (["evals/catalog.json::a", "evals/catalog.json::b::rep0"], 2),
        (["evals", "tests"], 4),
        (["tests", "evals/catalog.json"], 3),
    ],
)
def test_naming_the_eval_runs_it(mixed: Project, args: list[str], count: int) -> None:
    for part in args:
        if "::" not in part and part.startswith("evals/c"):
            assert refused(mixed.run(part)).startswith("the harness was not approved")
    mixed.run(APPROVE, "--collect-only", "evals")
    result = mixed.run(*args)
    assert result.ret == 0
    result.assert_outcomes(passed=count)


def test_naming_a_hidden_place_below_the_eval_runs_what_is_there(mixed: Project) -> None:
    mixed.cases({"id": "c"}, file="evals/sub/deep/catalog.json")
    mixed.run(APPROVE, "--collect-only", "evals")
    for place in ("evals/sub", "evals/sub/deep", "evals/sub/deep/catalog.json"):
        mixed.run(place, "--hillclimb-fresh").assert_outcomes(passed=1)
    assert mixed.spent() == ["c rep0"] * 3


def test_naming_the_conftest_activates(mixed: Project) -> None:
    hook = "\n\ndef pytest_hillclimb_load_cases(config):\n    return [{'id': 'hooked'}]\n"
    conftest = mixed.path / "evals/conftest.py"
    conftest.write_text(conftest.read_text() + hook)
    assert refused(mixed.run("evals/conftest.py"))
    result = mixed.approved("evals/conftest.py", "-v")
    result.stdout.fnmatch_lines("evals/conftest.py::hooked::rep0 PASSED*")
    assert mixed.spent() == ["hooked rep0"]


def test_an_eval_in_the_current_directory(mixed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mixed.path / "evals")
    assert refused(mixed.run("."))
    mixed.approved(".").assert_outcomes(passed=3)
    mixed.run("catalog.json::b").assert_outcomes(passed=1)


def test_hillclimb_paths_are_relative_to_the_ini_file(mixed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mixed.path / "tests")
    mixed.approved("--hillclimb").assert_outcomes(passed=3)
    assert len(mixed.rows()) == 2


def test_hillclimb_paths_that_do_not_exist_are_refused_only_when_wanted(mixed: Project) -> None:
    mixed.ini(hillclimb_paths="nowhere")
    mixed.run().assert_outcomes(passed=2)
    told = refused(mixed.run("--hillclimb"))
    assert "hillclimb_paths" in told
    assert "nowhere" in told
    mixed.ini(hillclimb_paths="nowhere", hillclimb_enabled="true")
    assert "nowhere" in refused(mixed.run())


def test_paths_on_the_command_line_win_over_hillclimb_paths(mixed: Project) -> None:
    mixed.cases({"id": "c"}, file="evals/sub/catalog.json")
    mixed.approved("--hillclimb", "evals/sub").assert_outcomes(passed=1)
    assert mixed.spent() == ["c rep0"]


@pytest.mark.parametrize("args", [["tests"], ["tests/test_unit.py"], ["evals/test_beside.py"]])
def test_an_option_that_finds_no_execution_is_refused(mixed: Project, args: list[str]) -> None:
    told = refused(mixed.run(APPROVE, "--hillclimb", *args))
    assert args[0] in told
    assert not mixed.spent()


def test_an_option_where_there_is_no_eval_at_all(pytester: pytest.Pytester, project: Project) -> None:
    (project.path / "evals/conftest.py").unlink()
    project.write("test_unit.py", "def test_unit():\n    pass\n")
    told = refused(project.run("--hillclimb"))
    assert "no eval found" in told
    assert "evals" in told
    project.run().assert_outcomes(passed=1)


def test_an_eval_without_cases_is_refused_and_named(project: Project) -> None:
    told = refused(project.approved())
    assert "no cases" in told
    assert "evals" in told
    assert not project.flow.exists()


@pytest.mark.parametrize("args", [[], ["--hillclimb"], ["evals"]])
def test_everything_deselected_stays_5(mixed: Project, args: list[str]) -> None:
    mixed.ini(hillclimb_enabled="true")
    mixed.approved("--collect-only")
    result = mixed.run("-k", "nothing_is_called_this", *args)
    assert result.ret == 5
    assert not mixed.spent()


def test_two_separate_evals_are_refused(mixed: Project) -> None:
    conftest = (mixed.path / "evals/conftest.py").read_text()
    mixed.write("other/conftest.py", conftest)
    mixed.cases({"id": "a"}, file="other/catalog.json")
    mixed.ini(hillclimb_paths="evals other")
    for args in (["--hillclimb"], ["evals", "other"], ["--hillclimb", "."]):
        told = refused(mixed.run(APPROVE, *args))
        assert "evals" in told
        assert "other" in told
    [line] = alone_lines(mixed.run())
    assert line.startswith("hillclimb: 2 catalogs left alone")
    mixed.approved("--hillclimb", "other").assert_outcomes(passed=1)


def test_an_eval_root_inside_of_another_is_one_eval(mixed: Project) -> None:
    mixed.write("evals/sub/conftest.py", "def pytest_hillclimb_load_cases(config):\n    return [{'id': 'inner'}]\n")
    mixed.approved("--hillclimb").assert_outcomes(passed=4)
    assert sorted(mixed.spent()) == ["a rep0", "b rep0", "inner rep0"]


def test_the_whole_repository_may_be_the_eval(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\nhillclimb_enabled = true\n")
    hooks = (project.path / "evals/conftest.py").read_text().replace(".parents[1]", ".parents[0]")
    (project.path / "evals/conftest.py").unlink()
    project.write("conftest.py", hooks)
    project.cases({"id": "top"}, file="catalog.json")
    project.cases({"id": "low"}, file="data/catalog.json")
    project.write("test_unit.py", "def test_unit():\n    pass\n")
    project.approved().assert_outcomes(passed=3)
    assert sorted(project.spent()) == ["low rep0", "top rep0"]


def test_a_conftest_that_only_mentions_the_package_is_no_eval(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\n")
    project.write("evals/conftest.py", "import pytest_hillclimb\n")
    project.cases({"id": "a"})
    result = project.run()
    assert result.ret == 5
    assert not alone_lines(result)


def test_other_names_of_catalogs(mixed: Project) -> None:
    mixed.ini(hillclimb_enabled="true", hillclimb_catalogs="smoke.jsonl other.csv")
    mixed.write("evals/smoke.jsonl", '{"id": "x"}\n')
    mixed.write("evals/sub/other.csv", "id\n007\n")
    mixed.write("evals/sub/catalog.json", "this is none any more")
    result = mixed.approved("-v", "evals")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["evals/smoke.jsonl::x::rep0 *", "evals/sub/other.csv::007::rep0 *"])
    assert sorted(mixed.spent()) == ["007 rep0", "x rep0"]


def test_ordinary_tests_under_workers_are_not_the_plugins_business(mixed: Project) -> None:
    pytest.importorskip("xdist")
    result = mixed.run("-n1")
    assert result.ret == 0
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--hillclimb-variant", "3"], "--hillclimb-variant"),
        (["--hillclimb-variant", "v03"], "--hillclimb-variant"),
        (["--hillclimb-variant", "../v1"], "--hillclimb-variant"),
        (["--hillclimb-reps", "0"], "--hillclimb-reps"),
        (["--hillclimb-reps", "two"], "'two'"),
        (["--hillclimb-concurrency=-1"], "--hillclimb-concurrency"),
        (["--hillclimb-timeout", "nan"], "--hillclimb-timeout"),
        (["--hillclimb-timeout=-1"], "--hillclimb-timeout"),
        (["--hillclimb-fail-on", "warning"], "'grade' or 'error'"),
        (["--hillclimb-limit", "0"], "--hillclimb-limit"),
        (["--hillclimb-model", ""], "--hillclimb-model"),
        (["--hillclimb-case", ""], "--hillclimb-case"),
        (["--hillclimb-flow", ""], "--hillclimb-flow"),
    ],
)
def test_a_bad_value_is_refused_in_one_line(mixed: Project, args: list[str], words: str) -> None:
    before = mixed.files()
    assert words in refused(mixed.run(APPROVE, *args))
    assert mixed.files() == before


def test_a_bad_value_in_the_ini_file_names_key_and_file(mixed: Project) -> None:
    mixed.ini(hillclimb_enabled="true", hillclimb_reps="many")
    told = refused(mixed.run())
    assert "hillclimb_reps" in told
    assert "pytest.ini" in told
    assert "'many'" in told


def test_the_command_line_wins_over_the_ini_file(mixed: Project) -> None:
    mixed.ini(hillclimb_reps="2", hillclimb_variant="v4", hillclimb_fail_on="error")
    mixed.approved("--hillclimb", "evals/catalog.json::a").assert_outcomes(passed=2)
    assert len(mixed.rows("v4")) == 2
    mixed.run("--hillclimb-reps", "1", "--hillclimb-variant", "v5", "evals/catalog.json::a").assert_outcomes(passed=1)
    assert len(mixed.rows("v5")) == 1


def test_where_the_flow_lies(mixed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mixed.path / "tests")
    mixed.approved("--hillclimb-flow", "typed").assert_outcomes(passed=3)
    assert len(mixed.rows(flow=mixed.path / "tests/typed")) == 2
    mixed.ini(hillclimb_flow="kept/flow")
    mixed.approved("--hillclimb").assert_outcomes(passed=3)
    assert len(mixed.rows(flow=mixed.path / "kept/flow")) == 2
    mixed.ini()
    mixed.approved("--hillclimb").assert_outcomes(passed=3)
    assert len(mixed.rows()) == 2


def test_settings_in_pyproject(mixed: Project) -> None:
    (mixed.path / "pytest.ini").unlink()
    keys = 'hillclimb_enabled = true\nhillclimb_paths = ["evals"]\nhillclimb_reps = "2"\n'
    mixed.write("pyproject.toml", f"[tool.pytest.ini_options]\n{keys}")
    mixed.approved("evals/catalog.json").assert_outcomes(passed=4)


@pytest.mark.parametrize("option", ["--help", "--version", "--markers", "--fixtures"])
def test_asking_pytest_about_itself_needs_no_approval(project: Project, option: str) -> None:
    project.cases({"id": "a"})
    result = project.run(option)
    assert result.ret == 0
    assert "not approved" not in result.stderr.str()
    assert not project.flow.exists()


def test_strict_markers_and_strict_config(project: Project) -> None:
    project.write("pytest.ini", INI + "addopts = --strict-markers --strict-config\nfilterwarnings = error\n")
    project.cases({"id": "a"})
    result = project.approved("-m", "hillclimb")
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    assert project.run("-m", "not hillclimb").ret == 5
