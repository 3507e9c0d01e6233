"""The harness gate: a run starts only with the harness that a person has approved."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hillclimb.errors import HarnessError
from pytest_hillclimb.flow.harness import Harness, digest_harness
from pytest_hillclimb.flow.layout import FlowDir
from pytest_hillclimb.flow.roots import catalog_files
from pytest_hillclimb.flow.statefile import read_state
from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.model.state import LoopState
from pytest_hillclimb.options import APPROVE

_LISTED = 12
_SHOWN_DIGITS = 12


def pass_gate(config: pytest.Config, settings: Settings, eval_root: Path) -> tuple[Harness, bool]:
    """Compare the harness with the approved one.

    :returns: the harness, and whether an approval is still to be recorded
    :raises HarnessError: when it was not approved as it is
    :raises RefusedError: when flow or state cannot be used
    """
    from pytest_hillclimb.wiring.activation import confcutdir

    with FlowDir(settings.flow_base, settings.flow) as flow:
        flow.preflight(settings.variant)
        state = LoopState.parse(read_state(flow.find()))
    norecursedirs = config.getini("norecursedirs")
    harness = digest_harness(
        rootdir=config.rootpath,
        confcutdir=confcutdir(config),
        eval_root=eval_root,
        norecursedirs=norecursedirs,
        catalogs=catalog_files(eval_root, config.getini("hillclimb_catalogs"), norecursedirs),
        extra=[settings.candidates] if settings.candidates is not None else [],
        harness_paths=state.harness_paths,
        leave_out=settings.all_records,
    )
    same = state.harness_sha == harness.sha
    if not same and not settings.approve_harness and not config.known_args_namespace.collectonly:
        raise HarnessError(_refusal(harness, state.harness_sha))
    return harness, settings.approve_harness and not same


def short(sha: str) -> str:
    """Return a digest as it is shown."""
    return sha[:_SHOWN_DIGITS]


def _refusal(harness: Harness, approved: str | None) -> str:
    files = ", ".join(harness.files[:_LISTED])
    if len(harness.files) > _LISTED:
        files += f" and {len(harness.files) - _LISTED} more"
    what = (
        f"the harness has changed since it was approved ({short(approved)} -> {short(harness.sha)})"
        if approved
        else "the harness was not approved yet"
    )
    missing = f"; listed but missing: {', '.join(harness.missing)}" if harness.missing else ""
    unpinned = "" if harness.has_lockfile else "; no lockfile pins the dependencies"
    return f"{what}; review {files}{missing}{unpinned}; then run once with {APPROVE}"
