"""The lanes of a session: the cases, the chaos scenarios, and the two checks of a grader."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb import hookspecs
from pytest_hillclimb.catalog import CatalogEntry
from pytest_hillclimb.chaos.lane import chaos_app
from pytest_hillclimb.chaos.scenarios import scenario_cases
from pytest_hillclimb.engine.app import App
from pytest_hillclimb.engine.probe import probe_app
from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.flow.roots import CONFTEST
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.settings import CHAOS, PROBES
from pytest_hillclimb.wiring.hooks import file_of, implementations, is_async


def hooks_of(lane: str) -> Iterable[str]:
    """Return the names of the hooks that a lane cannot do without."""
    return hookspecs.CHAOS_HOOKS if lane == CHAOS else hookspecs.MAIN_HOOKS


def in_lane(app: App, hook: Any) -> App:
    """Return the app as the lane of its settings runs it; *hook* is the relay of the file that its cases lie in."""
    lane = app.settings.lane
    if lane in PROBES:
        return probe_app(app, lane, lambda case: _expected(case, hook))
    if lane != CHAOS:
        return app
    return chaos_app(
        app,
        lambda fault, ctx: hook.pytest_hillclimb_inject_fault(fault=fault, ctx=ctx),
        lambda fault, run, ctx: hook.pytest_hillclimb_check_invariant(fault=fault, run=run, ctx=ctx),
        check_is_async=is_async(hook.pytest_hillclimb_check_invariant),
    )


def _expected(case: Case, hook: Any) -> object:
    if hook.pytest_hillclimb_expected_answer.get_hookimpls():
        return hook.pytest_hillclimb_expected_answer(case=case)
    return case.expected


def chaos_entries(config: pytest.Config, eval_root: Path) -> tuple[Path, list[CatalogEntry]]:
    """Return the scenarios as cases, and the conftest under which they are collected: the one that injects faults."""
    homes = (file_of(each.plugin) for each in implementations(config, "pytest_hillclimb_inject_fault"))
    found = [home for home in homes if home is not None and home.name == CONFTEST]
    home = min(found, key=lambda path: len(path.parts), default=eval_root / CONFTEST)
    return home, [CatalogEntry(case, "the chaos lane", case.id) for case in scenario_cases()]


def refuse_catalogs(config: pytest.Config, home: Path) -> None:
    """Refuse catalogs that are named on the command line of a chaos lane, which collects nothing below them.

    :param home: the file that the lane's items lie under
    :raises OptionError: for the first one
    """
    base = config.invocation_params.dir
    for argument in config.args:
        path = Path(os.path.abspath(base / argument.split("::", 1)[0]))
        if path.is_file() and path.name in config.getini("hillclimb_catalogs"):
            shown = os.path.relpath(home, base)
            raise OptionError(
                f"--hillclimb-lane chaos: {argument} is a catalog, but the lane's items lie under {shown}: name that"
            )
