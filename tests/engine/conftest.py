"""What the tests of the engine share: labs, and ways to hang that end with the test."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from engine_lab import PATIENCE_S, GradeCase, Hang, Lab, RunCase

from pytest_hillclimb.engine.outcome import Signal
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.model.settings import Settings


@pytest.fixture
def hang() -> Iterator[Hang]:
    hang = Hang()
    yield hang
    hang.over.set()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where workspaces are made."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


@pytest.fixture
def lab(temporary: Path, tmp_path: Path, hang: Hang) -> Iterator[Callable[..., Lab]]:
    """Make labs; when the test is over they are closed, and each of their trials must have ended at most once."""
    labs: list[Lab] = []

    def make(
        run_case: RunCase = lambda case, ctx: {"output": f"answer to {case.id}"},
        grade_case: GradeCase = lambda case, run, ref, ctx: True,
        *,
        width: int = 4,
        perf: Callable[[Case, Run], list[object]] = lambda case, run: [],
        reference: Callable[[str], str | None] = lambda safe_id: None,
        signal: Callable[[BaseException], Signal | None] = lambda error: None,
        state: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Lab:
        settings = Settings(flow="flow", flow_base=tmp_path, concurrency=width, **{"timeout": PATIENCE_S, **options})
        labs.append(
            Lab(
                run_case,
                grade_case,
                width=width,
                settings=settings,
                perf=perf,
                reference=reference,
                signal=signal,
                state=state or {},
            )
        )
        return labs[-1]

    yield make
    hang.over.set()
    for each in labs:
        each.close(hurried=True)
        assert len(each.ends) == len(set(each.ends)), "a trial ended twice"
