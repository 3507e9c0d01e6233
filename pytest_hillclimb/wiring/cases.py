"""Loading and checking all cases of an eval before collection, so that a bad one is refused before anything runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_hillclimb.catalog import CatalogEntry, check_cases, check_splits, entries_from, read_catalog
from pytest_hillclimb.errors import CatalogError
from pytest_hillclimb.flow.roots import CONFTEST, catalog_files
from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.model.state import LoopState
from pytest_hillclimb.schedule.plan import Execution, plan, selected_cases
from pytest_hillclimb.wiring.activation import Activation
from pytest_hillclimb.wiring.hooks import load_cases


@dataclass(frozen=True, slots=True)
class LoadedCases:
    """The cases of a session. ``by_file`` maps each file that cases are collected under to their executions."""

    entries: list[CatalogEntry]
    executions: list[Execution]
    by_file: dict[Path, list[tuple[CatalogEntry, list[Execution]]]]
    selected: frozenset[str] | None
    notes: list[str]


def load(config: pytest.Config, activation: Activation, state: LoopState) -> LoadedCases:
    """Read every catalog and every hook, and check the whole set of cases.

    :raises RefusedError: for anything that is wrong with a catalog, the splits or the selection
    """
    sources: list[tuple[Path, list[CatalogEntry]]] = []
    norecursedirs = config.getini("norecursedirs")
    for path in catalog_files(activation.eval_root, config.getini("hillclimb_catalogs"), norecursedirs):
        sources.append((path, read_catalog(path, _shown(config, path))))
    for path, given in load_cases(config, activation.eval_root):
        sources.append((path, entries_from(given, _shown(config, path))))
    entries = [entry for _, found in sources for entry in found]
    if not entries:
        names = ", ".join(config.getini("hillclimb_catalogs"))
        where = _shown(config, activation.eval_root)
        raise CatalogError(f"no cases: {where} has neither a catalog ({names}) nor a pytest_hillclimb_load_cases hook")
    check_cases(entries)
    notes = check_splits(state, entries)
    return arrange(sources, activation.settings, notes)


def arrange(
    sources: Sequence[tuple[Path, Sequence[CatalogEntry]]], settings: Settings, notes: Sequence[str] = ()
) -> LoadedCases:
    """Return the plan and the selection of cases that were read and checked.

    :param sources: each file that cases are collected under, with its cases
    :raises OptionError: when a selected case does not exist
    """
    entries = [entry for _, found in sources for entry in found]
    cases = [entry.case for entry in entries]
    executions = plan(cases, settings.reps)
    by_case: dict[str, list[Execution]] = {}
    for execution in executions:
        by_case.setdefault(execution.case.safe_id, []).append(execution)
    by_file: dict[Path, list[tuple[CatalogEntry, list[Execution]]]] = {}
    for path, found in sources:
        by_file.setdefault(path, []).extend((entry, by_case[entry.case.safe_id]) for entry in found)
    return LoadedCases(entries, executions, by_file, selected_cases(cases, settings.case), list(notes))


def is_hook_file(path: Path) -> bool:
    """Return whether cases collected under *path* come from a hook."""
    return path.name == CONFTEST


def _shown(config: pytest.Config, path: Path) -> str:
    return os.path.relpath(path, config.rootpath)
