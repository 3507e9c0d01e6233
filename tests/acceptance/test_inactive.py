"""A session without evals hardly notices the plugin: nothing heavy is imported, nothing made, at most one line said."""

from __future__ import annotations

import json
import sys

import pytest
from eval_project import Project

LIST_MODULES = """
import json, sys


def pytest_unconfigure(config):
    path = config.rootpath / "modules.json"
    path.write_text(json.dumps(sorted(sys.modules)))
"""

HEAVY = {"pydantic", "pydantic_core", "anthropic", "httpx", "yaml", "asyncio", "tenacity", "filelock", "concurrent"}


@pytest.fixture
def plain(project: Project) -> Project:
    project.ini()
    project.cases({"id": "a"})
    (project.path / "evals/conftest.py").write_text("def pytest_hillclimb_run_case(case, ctx):\n    pass\n")
    project.write("conftest.py", LIST_MODULES)
    project.write("tests/test_unit.py", "def test_unit():\n    pass\n")
    return project


def modules(project: Project, *args: str) -> tuple[set[str], str]:
    # Other plugins that are installed would hide what this one imports.
    others = [word for name in ("xdist", "anyio", "hypothesispytest", "cacheprovider") for word in ("-p", f"no:{name}")]
    ran = project.command(*others, *args)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    path = project.path / "modules.json"
    found = set(json.loads(path.read_text()))
    path.unlink()
    return found, ran.stdout


@pytest.mark.parametrize("args", [[], ["tests"]], ids=["evals collected", "tests only"])
def test_nothing_heavy_is_imported(plain: Project, args: list[str]) -> None:
    if not args:
        # Without our hooks the conftest of the eval would be an error.
        without, _ = modules(plain, "-p", "no:hillclimb", "tests")
    else:
        without, _ = modules(plain, "-p", "no:hillclimb", *args)
    before = plain.files()
    with_plugin, shown = modules(plain, *args)
    added = with_plugin - without
    assert not {name.split(".")[0] for name in added} & HEAVY
    ours = {name for name in added if name.split(".")[0] == "pytest_hillclimb"}
    assert not {
        name for name in ours if name.split(".")[1:2] in (["engine"], ["model"], ["wiring"], ["catalog"], ["report"])
    }
    assert len(added) < 20, sorted(added)
    assert plain.files() == before
    assert shown.count("hillclimb:") == (0 if args else 1)


def test_a_project_without_evals_sees_no_line_at_all(plain: Project) -> None:
    (plain.path / "evals/conftest.py").unlink()
    _, shown = modules(plain)
    assert "hillclimb:" not in shown


def test_importing_the_package_loads_nothing_heavy(plain: Project) -> None:
    code = (
        "import sys, pytest_hillclimb; print(sorted(set(sys.modules) & {'pydantic', 'anthropic', 'yaml', 'asyncio'}))"
    )
    result = plain.pytester.run(sys.executable, "-c", code)
    assert result.outlines == ["[]"]
