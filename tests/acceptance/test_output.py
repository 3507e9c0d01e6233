"""What trials print and log lands with their own item, although their calls run ahead of pytest's protocol."""

from __future__ import annotations

import re

import pytest
from eval_project import ASYNC_RUN, HOOKS, Project, reports


def sections(report: pytest.TestReport) -> dict[str, str]:
    found: dict[str, str] = {}
    for title, text in report.sections:
        found[title] = found.get(title, "") + text
    return found


def own(found: dict[str, str], stream: str) -> str:
    return "".join(text for title, text in found.items() if f"{stream} call" in title)


@pytest.fixture(params=["plain", "async"])
def project_of_a_kind(project: Project, request: pytest.FixtureRequest) -> Project:
    if request.param == "async":
        project.write("evals/conftest.py", HOOKS + ASYNC_RUN)
    return project


def test_prints_and_logs_land_with_their_own_item(project_of_a_kind: Project) -> None:
    project = project_of_a_kind
    names = [f"c{i:03}" for i in range(200)]
    project.cases(
        *(
            {
                "id": name,
                "prints": [f"{name} out {n}" for n in range(3)],
                "warns": [f"{name} err"],
                "logs": [f"{name} log {n}" for n in range(2)],
                "grade": i % 50 != 0,
                "sleep": 0.001 * (i % 3),
            }
            for i, name in enumerate(names)
        )
    )
    result = project.approved("--hillclimb-concurrency=8")
    assert result.parseoutcomes() == {"passed": 196, "failed": 4}
    for name in names:
        found = sections(reports(result)[f"{name}::rep0"])
        assert own(found, "stdout") == "".join(f"{name} out {n}\n" for n in range(3))
        assert own(found, "stderr") == f"{name} err\n"
        assert re.findall(rf"{name} log \d", own(found, "log")) == [f"{name} log 0", f"{name} log 1"]
        others = set(re.findall(r"c\d\d\d", "".join(found.values()))) - {name}
        assert not others
    shown = result.stdout.str()
    assert "c000 out 0" in shown
    assert "c001 out 0" not in shown


def test_logs_below_warning_are_kept_when_the_ini_file_asks_for_them(project_of_a_kind: Project) -> None:
    project = project_of_a_kind
    project.ini(hillclimb_enabled="true", log_level="INFO", log_format="LOG %(message)s")
    project.cases(*({"id": f"c{i:03}", "informs": [f"c{i:03} informs"], "sleep": 0.001} for i in range(100)))
    result = project.approved("--hillclimb-concurrency=8")
    assert result.ret == 0
    missing = {
        name
        for name, report in reports(result).items()
        if own(sections(report), "log").strip() != f"LOG {name[:4]} informs"
    }
    assert not missing


def test_output_is_shown_under_the_headings_of_pytest(project: Project) -> None:
    project.cases({"id": "off", "grade": False, "prints": ["printed"], "warns": ["complained"], "logs": ["logged"]})
    shown = project.approved().stdout.str()
    for title, word in (("stdout", "printed"), ("stderr", "complained"), ("log", "logged")):
        assert len(re.findall(rf"-+ Captured {title} call -+\n(?:.*\n)?.*{word}", shown)) == 1


@pytest.mark.parametrize(("option", "kept"), [("--show-capture=no", ""), ("--show-capture=stderr", "complained")])
def test_show_capture(project: Project, option: str, kept: str) -> None:
    project.cases({"id": "off", "grade": False, "prints": ["printed"], "warns": ["complained"]})
    shown = project.approved(option).stdout.str()
    assert "printed" not in shown
    assert kept in shown
    assert ("complained" in shown) == bool(kept)


def test_output_of_passed_items_on_demand(project: Project) -> None:
    project.cases({"id": "a", "prints": ["printed by a"]}, {"id": "b", "prints": ["printed by b"]})
    shown = project.approved("-rP").stdout.str()
    assert re.search(r"_+ a rep0 _+\n-+ Captured stdout call -+\nprinted by a\n_+ b rep0 _+", shown)


def test_without_capture_prints_are_live(project_of_a_kind: Project) -> None:
    project = project_of_a_kind
    project.cases({"id": "a", "prints": ["live words"]}, {"id": "b", "sleep": 0.2, "grade": False, "prints": ["more"]})
    result = project.approved("-s")
    shown = result.stdout.str()
    assert shown.count("live words") == 1
    assert shown.index("live words") < shown.index("hillclimb: baseline ====")
    assert "Captured stdout" not in shown


def test_printing_and_failing(project: Project) -> None:
    project.cases(*({"id": f"c{i}", "prints": [f"printed by {i}"], "raises": "x"} for i in range(8)))
    result = project.approved()
    for i in range(8):
        assert own(sections(reports(result)[f"c{i}::rep0"]), "stdout") == f"printed by {i}\n"


def test_output_of_a_grader_lands_there_too(project: Project) -> None:
    project.write(
        "evals/conftest.py", HOOKS.replace('    spend("grade", case, ctx)\n', "    print('graded', case.id)\n")
    )
    project.cases(*({"id": f"c{i}"} for i in range(20)))
    result = project.approved("--hillclimb-concurrency=8")
    for name, report in reports(result).items():
        assert own(sections(report), "stdout") == f"graded {name.split(':')[0]}\n"


def test_threads_of_user_code_print_into_the_item_in_front(project: Project) -> None:
    project.cases(*({"id": f"c{i}", "threads": [f"thread of c{i}"], "sleep": 0.02} for i in range(6)))
    result = project.approved("--hillclimb-concurrency=3")
    everything = "".join(text for report in reports(result, "teardown").values() for _, text in report.sections)
    assert len(re.findall(r"thread of c\d", everything)) >= 3  # some may come while no item is in front


def test_fixtures_print_into_their_own_sections(project: Project) -> None:
    project.write(
        "conftest.py",
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef around(request):\n    name = request.node.parent.name\n"
        "    print('before', name)\n    yield\n    print('after', name)\n",
    )
    project.cases(*({"id": f"c{i}", "prints": [f"call of c{i}"]} for i in range(6)))
    result = project.approved()
    for name, report in reports(result, "teardown").items():
        case = name.split(":")[0]
        assert dict(report.sections) == {
            "Captured stdout setup": f"before {case}\n",
            "Captured stdout call": f"call of {case}\n",
            "Captured stdout teardown": f"after {case}\n",
        }


def test_much_output_is_cut(project: Project) -> None:
    project.cases({"id": "off", "grade": False, "prints": ["x" * 1000] * 500})
    result = project.approved()
    [report] = reports(result).values()
    assert len(own(sections(report), "stdout")) < 100_000
    assert "[cut]" in own(sections(report), "stdout")


def test_writers_that_hold_on_to_a_stream(project: Project) -> None:
    early = "import sys\n\nHELD = sys.stdout\n" + HOOKS.replace(
        "    act(case)\n",
        "    sys.stdout.write(f'write {case.id}\\n')\n    sys.stdout.writelines([f'lines {case.id}\\n'])\n"
        "    print(f'late {case.id}', flush=True)\n    sys.stdout.flush()\n    assert not sys.stdout.isatty()\n",
    )
    project.write("evals/conftest.py", early)
    project.cases(*({"id": f"c{i}"} for i in range(6)))
    result = project.approved()
    assert result.ret == 0
    for name, report in reports(result).items():
        case = name.split(":")[0]
        assert own(sections(report), "stdout") == f"write {case}\nlines {case}\nlate {case}\n"


def test_streams_and_logging_are_left_as_they_were(project: Project) -> None:
    import logging
    import sys

    handlers, level = list(logging.getLogger().handlers), logging.getLogger().level
    project.cases({"id": "a", "prints": ["x"], "logs": ["y"]})
    project.approved()
    assert logging.getLogger().handlers == handlers
    assert logging.getLogger().level == level
    assert "write" not in vars(sys.__stdout__) if hasattr(sys.__stdout__, "__dict__") else True


def test_an_end_of_output_that_comes_after_the_trial_goes_nowhere_wrong(project: Project) -> None:
    late = HOOKS.replace(
        "    act(case)\n",
        "    import threading\n    threading.Timer(0.05, print, ['late words']).start() if case.id == 'c0' else None\n",
    )
    project.write("evals/conftest.py", late)
    project.cases(*({"id": f"c{i}", "sleep": 0.1 * (i > 3)} for i in range(6)))
    result = project.approved()
    assert result.ret == 0
    assert "late words" not in str(reports(result)["c0::rep0"].sections)


def test_live_logging_is_live_and_not_taken_for_output_of_the_trial(project: Project) -> None:
    project.cases({"id": "off", "grade": False, "logs": ["careful"]}, {"id": "slow", "sleep": 0.2})
    result = project.approved("-o", "log_cli=true")
    assert "live log" not in str(reports(result)["off::rep0"].sections)
    shown = result.stdout.str()
    assert 0 <= shown.find("careful") < shown.index("= FAILURES =")
