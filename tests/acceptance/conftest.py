"""The project that the acceptance tests run pytest in."""

from __future__ import annotations

import gc
import pkgutil
import tempfile
from collections.abc import Iterator
from importlib import import_module

import anthropic  # noqa: F401
import hypothesis  # noqa: F401
import pytest
from eval_project import Project

import pytest_hillclimb

# A session run in this process forgets the modules that it imported, and some cannot be imported twice.
for _module in pkgutil.walk_packages(pytest_hillclimb.__path__, "pytest_hillclimb."):
    import_module(_module.name)


@pytest.fixture(scope="session", autouse=True)
def _quick_collections() -> Iterator[None]:
    """Keep what is loaded by now out of the garbage collections that every pytest session makes at its end."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_XDIST_WORKER", "CI", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    # Seen by the sessions of a test alone: what they leave in a temporary directory goes with the test.
    temporary = pytester.mkdir("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return Project(pytester)
