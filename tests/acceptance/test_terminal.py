"""What people read: the header, the details of what failed, and the table at the end."""

from __future__ import annotations

import os
import re

import pytest
from eval_project import ASYNC_RUN, HOOKS, Project


def section(result: pytest.RunResult, title: str = "hillclimb: baseline") -> list[str]:
    """Return the lines of the plugin's part of the summary."""
    lines = result.outlines
    start = next(i for i, line in enumerate(lines) if re.fullmatch(rf"=+ {title} =+", line))
    end = next(i for i, line in enumerate(lines[start + 1 :], start + 1) if line.startswith("==="))
    return lines[start + 1 : end]


def test_the_header(project: Project) -> None:
    project.cases({"id": "a"})
    lines = project.approved("--hillclimb-variant=v2").outlines
    header = lines[: next(i for i, line in enumerate(lines) if line.startswith("collected"))]
    told = "\n".join(line for line in header if line.startswith("hillclimb:"))
    assert "variant v2" in told
    assert "eval evals" in told
    assert ".claude/hillclimb/flow" in told


def test_the_table(project: Project) -> None:
    project.cases(
        {"id": "a", "grade": {"pass": 1, "tone": 0.5}},
        {"id": "off", "grade": {"pass": 0, "tone": 0.25}},
        {"id": "shown", "grade": {"tone": 0}},
        {"id": "broken", "raises": "x"},
        {"id": "bad", "grade": "raise"},
        {"id": "out", "skips": "not here"},
    )
    project.approved("-k", "shown")
    table = section(project.run())
    text = "\n".join(table)
    assert re.search(r"^scored +2 +\(1 passed, 1 failed\)", text, re.MULTILINE)
    assert re.search(r"^errors +2 +\((error 1, grader_error 1|grader_error 1, error 1)\)", text, re.MULTILINE)
    assert re.search(r"^skipped +1", text, re.MULTILINE)
    assert re.search(r"^recorded +1", text, re.MULTILINE)
    assert re.search(r"^pass +mean 0\.500 +n=2 cases", text, re.MULTILINE)
    assert re.search(r"^tone +mean 0\.250 +n=3 cases", text, re.MULTILINE)
    assert re.search(r"^tokens +9 in, 6 out", text, re.MULTILINE)
    assert "baseline/results.jsonl" in text
    assert "2 ok, 2 failed" in text


def test_means_are_taken_over_cases_not_over_rows(project: Project) -> None:
    project.cases({"id": "a", "grade": {"m": 1}}, {"id": "b", "grade": {"m": 0}})
    project.approved("evals/catalog.json::a", "--hillclimb-reps=3")
    text = "\n".join(section(project.run("evals/catalog.json::b")))
    assert re.search(r"^m +mean 0\.500 +n=2 cases, 4 rows", text, re.MULTILINE)


def test_the_table_has_no_blank_lines_and_none_is_missing_before_it(project: Project) -> None:
    project.cases({"id": "a"})
    result = project.approved()
    table = section(result)
    assert table[0].startswith("scored")
    assert all(table)


def test_retries_are_counted(project: Project) -> None:
    flaky = (
        "    act(case)\n    if ctx.attempt == 1:\n        error = RuntimeError('try again')\n"
        "        error.status_code = 503\n        error.headers = {}\n        raise error\n"
    )
    conftest = HOOKS.replace("    act(case)\n", flaky)
    project.write("evals/conftest.py", "import random\n\nrandom.uniform = lambda a, b: 0.01\n" + conftest)
    project.cases({"id": "a"})
    result = project.approved()
    text = "\n".join(section(result))
    assert result.ret == 0
    assert re.search(r"^retries +1 app, 0 judge", text, re.MULTILINE)


def test_what_a_failure_shows(project: Project) -> None:
    project.cases(
        {
            "id": "off",
            "prompt": "When are you open?",
            "says": "never",
            "expected": "10 to 16",
            "grade": {"pass": False, "tone": 0.123456},
            "why": {"pass": "the hours are wrong", "tone": "gruff"},
        },
        {"id": "broken", "raises": "the app fell over", "prompt": "Hello?"},
    )
    result = project.approved()
    shown = result.stdout.str()
    for words in ("When are you open?", "never", "10 to 16", "the hours are wrong", "0.1235", "gruff"):
        assert words in shown
    assert "baseline/traces/off_rep0.json" in shown
    assert "the app fell over" in shown
    assert "evals/conftest.py" in shown  # where it was raised
    assert "Hello?" in shown
    assert "errors.jsonl" in shown
    result.stdout.re_match_lines([r"_+ off rep0 _+"])
    result.stdout.re_match_lines([r"_+ .*broken rep0 _+"])


def test_a_structured_prompt_and_output(project: Project) -> None:
    project.cases({"id": "off", "prompt": [{"role": "user"}], "says": {"answer": ["x", 1]}, "grade": False})
    shown = project.approved().stdout.str()
    assert '{"role":"user"}' in shown.replace(" ", "")
    assert "answer" in shown


EVIL = "\x1b[2J\x1b[31mred\x1b]0;title\x07 bell\x07 back\x08\x08 \rover \u202etfel \x9b31m \ud800 \x00 \u2028 end"


@pytest.mark.parametrize("hooks", ["plain", "async"])
def test_nothing_from_the_data_steers_the_terminal(project: Project, hooks: str) -> None:
    if hooks == "async":
        project.write("evals/conftest.py", HOOKS + ASYNC_RUN)
    forged = "fine\n=== 9 passed in 0.1s ===\nFAILED evals/catalog.json::no::rep0"
    project.cases(
        {
            "id": f"e{EVIL}",
            "prompt": EVIL,
            "says": forged,
            "expected": EVIL,
            "grade": {f"pass{EVIL[:9]}": 0, "pass": 0},
        },
        {"id": "off", "prompt": forged, "says": EVIL, "grade": False, "why": f"{EVIL}\n{forged}"},
        {"id": "broken", "raises": f"{EVIL}{forged}"},
        {"id": "out", "skips": f"{EVIL}{forged}"},
        {"id": "said", "prints": [f"{EVIL}"], "warns": [EVIL], "logs": [EVIL], "grade": False},
        {"id": "fine", "tags": [EVIL]},
    )
    result = project.approved("-rA", "-v")
    shown = result.stdout.str()
    assert result.ret == 1
    assert not re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e\ud800]", shown)
    assert not [line for line in result.outlines if line.startswith(("=== 9 passed", "FAILED evals/catalog.json::no"))]


def test_long_texts_are_cut(project: Project) -> None:
    project.cases(
        {"id": "long", "prompt": "x" * 100_000, "says": "\n".join(f"line {i}" for i in range(500)), "grade": False},
        {"id": "broken", "raises": "y" * 100_000},
    )
    result = project.approved()
    assert len(result.stdout.str()) < 8000
    assert len(result.outlines) < 90
    assert len(project.rows()[0]["prompt"]) == 100_000


def test_a_recorded_verdict_is_red_again_and_says_how_to_run_it_again(project: Project) -> None:
    project.cases({"id": "off", "grade": False, "prompt": "the question", "why": "it was wrong"}, {"id": "a"})
    project.approved()
    result = project.run()
    assert result.ret == 1
    shown = result.stdout.str()
    assert len(project.spent()) == 2
    assert "the question" in shown
    assert "it was wrong" in shown
    assert "recorded" in next(line for line in result.outlines if line.startswith("FAILED"))
    assert "--hillclimb-fresh" in "\n".join(section(result))
    assert "--hillclimb-fresh" not in project.run("--hillclimb-reps=2").stdout.str()


def test_paths_that_are_printed_can_be_opened_from_where_pytest_was_called(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.cases({"id": "off", "grade": False})
    (project.path / "deep/down").mkdir(parents=True)
    monkeypatch.chdir(project.path / "deep/down")
    result = project.approved()
    for path in re.findall(r"\S+\.json(?:l)?\b(?!::)", result.stdout.str()):
        if "catalog" not in path:
            assert (project.path / "deep/down" / path).exists(), path


def test_misses_that_are_not_red_are_shown_too(project: Project) -> None:
    project.cases({"id": "off", "grade": False, "prompt": "the question", "says": "the answer", "why": "too short"})
    result = project.approved("--hillclimb-fail-on=error")
    assert result.ret == 0
    shown = result.stdout.str()
    for words in ("evals/catalog.json::off::rep0", "score 0", "too short"):
        assert words in shown


def test_the_terminal_need_not_speak_utf8(project: Project) -> None:
    project.cases({"id": "off", "prompt": "caf\u00e9 \u4f60\u597d \U0001f600", "grade": False, "prints": ["\u4f60"]})
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    ran = project.command("--hillclimb-approve-harness", "-rA", env=env)
    assert ran.returncode == 1
    assert "INTERNALERROR" not in ran.stdout + ran.stderr
    assert "1 failed" in ran.stdout


def test_narrow_terminals(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    project.cases({"id": "off", "grade": False})
    assert project.approved().ret == 1


def test_node_ids_in_the_table_can_be_pasted(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.cases({"id": "off", "grade": False})
    monkeypatch.chdir(project.path.parent)
    result = project.approved(project.path.name, "--hillclimb-fail-on=error")
    [node] = re.findall(r"\S+::off::rep0", "\n".join(section(result)))
    assert project.run(node, "--hillclimb-fail-on=error").ret == 0


def test_errors_name_places_in_user_code_only(project: Project) -> None:
    project.cases({"id": "broken", "raises": "x"}, {"id": "bad", "grade": "raise"}, {"id": "none", "grade": None})
    shown = [line for line in project.approved().outlines if re.match(r"\s+at\s+\|", line)]
    assert shown
    assert all("evals/conftest.py" in line for line in shown), shown


def test_an_error_of_many_lines_keeps_its_words_apart_on_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    project.cases({"id": "broken", "raises": "the app fell over\nbadly"})
    [line] = [line for line in project.approved().outlines if line.startswith("ERROR evals/")]
    assert re.search(r"fell over\W+badly", line)
