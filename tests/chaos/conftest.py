"""What the tests of faults in the plugin itself share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos_project import PRELUDE, ChaosProject, NewChaosProject
from crash_project import Forge


@pytest.fixture
def new_project(tmp_path: Path, forge: Forge) -> NewChaosProject:
    """Return a function that makes a project with an eval whose conftest has the given source."""
    numbers = iter(range(1000))

    def make(conftest: str) -> ChaosProject:
        return ChaosProject(tmp_path / f"project{next(numbers)}", forge, PRELUDE + conftest)

    return make


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    forge = Forge()
    yield forge
    forge.close()
