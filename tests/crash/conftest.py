"""What the crash tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_project import IDLE_EVAL, IDLE_S, Forge, NewProject, Project, Slowness


@pytest.fixture
def new_project(tmp_path: Path, forge: Forge) -> NewProject:
    """Return a function that makes a project with an eval whose conftest has the given source."""
    numbers = iter(range(1000))

    def make(conftest: str) -> Project:
        return Project(tmp_path / f"project{next(numbers)}", forge, conftest)

    return make


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    forge = Forge()
    yield forge
    forge.close()


@pytest.fixture(scope="session")
def slowness(tmp_path_factory: pytest.TempPathFactory, forge: Forge) -> Slowness:
    """Return a function that tells how many times slower than an idle machine this one is just now."""
    project = Project(tmp_path_factory.mktemp("slowness") / "project", forge, IDLE_EVAL)

    def measure() -> float:
        return max(1, project.run("--hillclimb-fresh").late / IDLE_S)

    return measure
