"""What the tests of the Claude client share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_lab import ClaudeLab
from engine_lab import PATIENCE_S, Lab
from messages_server import MessagesServer

from pytest_hillclimb.engine import retry
from pytest_hillclimb.model.settings import Settings


@pytest.fixture
def messages_server() -> Iterator[MessagesServer]:
    """A scripted Messages API; set ``script``, or call ``play``."""
    with MessagesServer() as server:
        yield server


@pytest.fixture
def claude_lab(messages_server: MessagesServer, tmp_path: Path) -> Iterator[Callable[..., ClaudeLab]]:
    """Make engines whose apps talk to the server; ``model``, ``timeout`` and other settings may be given."""
    labs: list[Lab] = []

    def make(run_case: Any, grade_case: Any = lambda case, run, ref, ctx: True, **options: Any) -> ClaudeLab:
        settings = {"model": "claude-haiku-4-5", "timeout": PATIENCE_S, "concurrency": 1, **options}
        lab = Lab(
            run_case,
            grade_case,
            width=settings["concurrency"],
            settings=Settings(flow="flow", flow_base=tmp_path, **settings),
            perf=lambda case, run: [],
            reference=lambda safe_id: None,
            signal=lambda error: None,
            state={},
        )
        labs.append(lab)
        return ClaudeLab(lab, messages_server)

    yield make
    for lab in labs:
        lab.close(hurried=True)


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits of the trial's own making are short; those that a server asks for are as they are."""
    monkeypatch.setattr(retry, "_MAX_WAIT_S", 0.01)
