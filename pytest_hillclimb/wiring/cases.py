"""Loading and checking all cases of an eval before collection, so that a bad one is refused before anything runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_hillclimb.catalog import CatalogEntry, check_cases, check_splits, entries_from, read_catalog
from pytest_hillclimb.errors import CatalogError, OptionError
from pytest_hillclimb.flow.roots import CONFTEST, catalog_files
from pytest_hillclimb.model.candidate import Manifest
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.settings import CHAOS, Settings
from pytest_hillclimb.model.state import LoopState
from pytest_hillclimb.schedule.manifest import read_manifest
from pytest_hillclimb.schedule.matrix import active_candidates, matrix_plan
from pytest_hillclimb.schedule.plan import Execution, Key, plan, prompt_id
from pytest_hillclimb.schedule.prompt_ids import check_prompt_ids
from pytest_hillclimb.schedule.selection import select
from pytest_hillclimb.wiring.activation import Activation
from pytest_hillclimb.wiring.hooks import load_cases
from pytest_hillclimb.wiring.lanes import chaos_entries, refuse_catalogs


@dataclass(frozen=True, slots=True)
class LoadedCases:
    """The cases of a session.

    ``by_file`` maps each file that cases are collected under to their executions; ``selected`` holds the keys of what
    options have selected, None for all.
    """

    entries: list[CatalogEntry]
    executions: list[Execution]
    by_file: dict[Path, list[tuple[CatalogEntry, list[Execution]]]]
    selected: frozenset[Key] | None
    notes: list[str]
    manifest: Manifest | None = None


def load(config: pytest.Config, activation: Activation, state: LoopState) -> LoadedCases:
    """Read every catalog and every hook, and check the whole set of cases.

    :raises RefusedError: for anything that is wrong with a catalog, the splits or the selection
    """
    if activation.settings.lane == CHAOS:
        home, scenarios = chaos_entries(config, activation.eval_root)
        refuse_catalogs(config, home)
        manifest = _manifest(config, activation)
        if manifest is not None:
            check_prompt_ids(scenarios, manifest.candidates)
        return arrange([(home, scenarios)], activation.settings, manifest)
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
    manifest = _manifest(config, activation)
    if manifest is not None:
        check_prompt_ids(entries, manifest.candidates)
    row_ids = _row_ids(entries, manifest) if manifest is not None else ()
    notes = check_splits(state, entries, row_ids)
    return arrange(sources, activation.settings, manifest, notes)


def arrange(
    sources: Sequence[tuple[Path, Sequence[CatalogEntry]]],
    settings: Settings,
    manifest: Manifest | None,
    notes: Sequence[str] = (),
) -> LoadedCases:
    """Return the plan and the selection of cases that were read and checked.

    :param sources: each file that cases are collected under, with its cases
    :raises RefusedError: when a selected case or candidate does not exist, or the schedule is not possible
    """
    entries = [entry for _, found in sources for entry in found]
    cases = [entry.case for entry in entries]
    executions = _planned(cases, settings, manifest)
    by_case: dict[str, list[Execution]] = {}
    for execution in executions:
        by_case.setdefault(execution.case.safe_id, []).append(execution)
    by_file: dict[Path, list[tuple[CatalogEntry, list[Execution]]]] = {}
    for path, found in sources:
        by_file.setdefault(path, []).extend((entry, by_case[entry.case.safe_id]) for entry in found)
    selected = None
    if settings.case or settings.candidate:
        active = active_candidates(manifest, settings.schedule, settings.rotation) if manifest is not None else ()
        chosen = select(
            executions, candidates=settings.candidate, cases=settings.case, manifest=manifest, active=active
        )
        selected = frozenset(execution.key for execution in chosen)
    return LoadedCases(entries, executions, by_file, selected, list(notes), manifest)


def _manifest(config: pytest.Config, activation: Activation) -> Manifest | None:
    path = activation.settings.candidates
    return read_manifest(path, _shown(config, path)) if path is not None else None


def _row_ids(entries: Sequence[CatalogEntry], manifest: Manifest) -> set[str]:
    return {prompt_id(entry.case, candidate) for entry in entries for candidate in manifest.candidates}


def _planned(cases: Sequence[Case], settings: Settings, manifest: Manifest | None) -> list[Execution]:
    if manifest is not None:
        return matrix_plan(
            cases, settings.reps, manifest, schedule=settings.schedule, rotation=settings.rotation, seed=settings.seed
        )
    if settings.schedule == "balanced":
        raise OptionError("--hillclimb-schedule balanced needs candidates: name a manifest with --hillclimb-candidates")
    return plan(cases, settings.reps)


def is_hook_file(path: Path) -> bool:
    """Return whether cases collected under *path* come from a hook."""
    return path.name == CONFTEST


def _shown(config: pytest.Config, path: Path) -> str:
    return os.path.relpath(path, config.rootpath)
