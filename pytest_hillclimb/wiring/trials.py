"""Making trials of items: the user's hooks as the engine calls them, seen from the file that an item lies in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_hillclimb.engine.app import App
from pytest_hillclimb.engine.engine import Engine
from pytest_hillclimb.engine.trial import Trial
from pytest_hillclimb.model.state import read_only
from pytest_hillclimb.wiring import hooks
from pytest_hillclimb.wiring.campaign import Campaign
from pytest_hillclimb.wiring.collect import CaseFile, TrialItem
from pytest_hillclimb.wiring.lanes import in_lane


class TrialMaker:
    """Makes the trials of a session.

    :param campaign: what all executions share
    :param state: the loop state that ``ctx`` shows
    :param reference: returns the frozen baseline output of a path-safe id
    """

    def __init__(
        self,
        campaign: Campaign,
        state: Mapping[str, Any],
        reference: Callable[[str], str | None],
    ) -> None:
        self._campaign = campaign
        self._state = read_only(state)
        self._reference = reference
        self._apps: dict[CaseFile, App] = {}

    def make(self, item: TrialItem, engine: Engine) -> Trial:
        """Return a new trial of the execution of *item*."""
        home = item.getparent(CaseFile)
        if home is None:
            raise RuntimeError(f"{item.nodeid} is outside of any file of cases")
        app = self._apps.get(home)
        if app is None:
            app = self._apps[home] = in_lane(self._app(home.ihook), home.ihook)
        return Trial(item.execution, app, engine, item.position, self._campaign.worst_case(item.execution))

    def _app(self, hook: Any) -> App:
        campaign = self._campaign
        return App(
            run_case=lambda case, ctx: hook.pytest_hillclimb_run_case(case=case, ctx=ctx),
            grade_case=lambda case, run, ref, ctx: hook.pytest_hillclimb_grade_case(
                case=case, run=run, ref=ref, ctx=ctx
            ),
            perf=lambda case, run: list(hook.pytest_hillclimb_perf(case=case, run=run)),
            grade_is_async=hooks.is_async(hook.pytest_hillclimb_grade_case),
            reference=self._reference,
            signal=hooks.signal,
            settings=campaign.settings,
            state=self._state,
            prices=campaign.prices,
            redactor=campaign.redactor,
            required_env=campaign.manifest.required_env if campaign.manifest is not None else frozenset(),
        )
