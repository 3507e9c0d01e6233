"""What the tests of evals under pytest-xdist share."""

from __future__ import annotations

from pathlib import Path

import pytest
from worker_project import NewWorkerProject, WorkerProject


@pytest.fixture
def new_project(tmp_path: Path) -> NewWorkerProject:
    """Return a function that makes a project whose app does what its cases say."""
    numbers = iter(range(1000))

    def make(more: str = "") -> WorkerProject:
        return WorkerProject(tmp_path / f"project{next(numbers)}", more)

    return make
