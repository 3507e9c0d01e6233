"""The attempts of one trial: the context that each call of user code gets, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from pytest_hillclimb.engine.account import APP, JUDGE
from pytest_hillclimb.engine.app import App, Context
from pytest_hillclimb.engine.recording import CURRENT_RECORDING, Recording
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.schedule.plan import Execution


class Attempts:
    """Makes and keeps the contexts of a trial, by stage.

    :param deadline: returns the trial's deadline on the monotonic clock
    """

    def __init__(self, execution: Execution, app: App, deadline: Callable[[], float]) -> None:
        self.began = 0.0
        """When the last attempt began, on the monotonic clock."""
        self._execution = execution
        self._app = app
        self._deadline = deadline
        self._contexts: dict[str, list[Context]] = {APP: [], JUDGE: []}
        self._recordings: dict[str, Recording] = {}

    def begin(self, stage: str) -> Context:
        """Return the context of a new attempt of *stage*."""
        context = Context(
            execution=self._execution,
            app=self._app,
            attempt=len(self._contexts[stage]) + 1,
            deadline=self._deadline,
            attached_before=0 if stage == APP else sum(map(len, self.artifacts().values())),
        )
        self._contexts[stage].append(context)
        self._recordings[stage] = recording = Recording(context.attach, context.model if stage == APP else None)
        CURRENT_RECORDING.set(recording)
        self.began = monotonic()
        return context

    def complete(self, run: Run) -> Run:
        """Return the run of the last app attempt with what was recorded of it and its author did not give.

        :raises Substituted: when its calls were served by different models
        """
        return self._recordings[APP].complete(run)

    def billed(self, stage: str) -> dict[str, Any]:
        """Return what was recorded of the spend of the last attempt of *stage*, under the keys of a row."""
        recording = self._recordings.get(stage)
        known = recording.billed() if recording is not None else {}
        return known if stage == APP else {f"judge_{name}": value for name, value in known.items()}

    def artifacts(self) -> dict[str, bytes]:
        """Return what the last attempt of each stage attached."""
        last = [contexts[-1].artifacts() for contexts in self._contexts.values() if contexts]
        return {name: content for artifacts in last for name, content in artifacts.items()}

    def clean_up(self) -> None:
        """Remove what the attempts left in temporary directories."""
        for context in (*self._contexts[APP], *self._contexts[JUDGE]):
            context.clean_up()
        self._recordings.clear()
