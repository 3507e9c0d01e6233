"""What travels between the controller and its workers, as plain ASCII text: the plan out, outcomes home.

Everything is JSON with every character above ASCII escaped, so that nothing in it can break the transport. What a hook
gave that JSON cannot hold (an object as ``expected``, say) does not travel: a worker asks its own hook for it.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_hillclimb.catalog import CatalogEntry
from pytest_hillclimb.catalog.fields import case_of
from pytest_hillclimb.engine.outcome import Kind, Outcome
from pytest_hillclimb.errors import BadValueError, HillclimbError
from pytest_hillclimb.model.candidate import Manifest
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.jsonable import plain
from pytest_hillclimb.model.settings import Settings

if TYPE_CHECKING:
    import pytest

    from pytest_hillclimb.wiring.activation import Activation
    from pytest_hillclimb.wiring.cases import LoadedCases
    from pytest_hillclimb.wiring.run import EvalRun

VARIANT_PATH = "@hillclimb-variant@"
"""Stands for the path of the variant in a worker's reports: only the controller knows where that is."""

_TUPLES = ("case", "candidate")
_PATHS = ("flow_base", "candidates")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """All that a worker's session depends on. Paths in ``files`` and ``arguments`` are relative to ``rootdir``."""

    settings: Settings
    state: Mapping[str, Any]
    rootdir: str
    eval_root: str
    arguments: Sequence[str]
    python_path: Sequence[str]
    files: Sequence[tuple[str, list[CatalogEntry]]]
    in_memory: Mapping[str, Sequence[str]]
    """Fields by case id that did not travel."""
    earlier: Sequence[Outcome]
    references: Mapping[str, str | None]
    broken_references: Mapping[str, str]
    manifest: Manifest | None
    price_lines: Sequence[str]
    redact: Sequence[str]


def plan_of(config: pytest.Config, activation: Activation, loaded: LoadedCases, run: EvalRun) -> WorkerPlan:
    """Return the plan of a session."""
    rootdir, base = config.rootpath, config.invocation_params.dir
    references: dict[str, str | None] = {}
    broken: dict[str, str] = {}
    to_run = [e for e in loaded.executions if e.key not in run.recorded.rows]
    if not run.settings.is_baseline:
        for prompt_id in {execution.prompt_id for execution in to_run}:
            try:
                references[prompt_id] = run.reference(prompt_id)
            except HillclimbError as error:
                broken[prompt_id] = error.message
    earlier = [outcome for e in loaded.executions if (outcome := run.earlier_outcome(e)) is not None]
    return WorkerPlan(
        settings=run.settings,
        state=run.state.raw,
        rootdir=str(rootdir),
        eval_root=str(activation.eval_root),
        arguments=[_relative(argument, base, rootdir) for argument in config.args],
        python_path=[str(path) for path in config.getini("pythonpath")],
        files=[
            (os.path.relpath(path, rootdir), [entry for entry, _ in found]) for path, found in loaded.by_file.items()
        ],
        in_memory={},
        earlier=earlier,
        references=references,
        broken_references=broken,
        manifest=loaded.manifest,
        price_lines=run.campaign.price_lines,
        redact=run.campaign.redact,
    )


def encode_plan(plan: WorkerPlan) -> str:
    """Return a plan as text."""
    in_memory: dict[str, list[str]] = {}
    files = [[path, [_entry_data(entry, in_memory) for entry in entries]] for path, entries in plan.files]
    data = {name: getattr(plan, name) for name in ("rootdir", "eval_root", "arguments", "python_path")}
    data |= {"state": dict(plan.state), "files": files, "in_memory": in_memory}
    data |= {"references": dict(plan.references), "broken_references": dict(plan.broken_references)}
    data |= {"price_lines": list(plan.price_lines), "redact": list(plan.redact)}
    data["manifest"] = plan.manifest.model_dump(mode="json") if plan.manifest is not None else None
    data["settings"] = {k: str(v) if isinstance(v, Path) else v for k, v in asdict(plan.settings).items()}
    data["earlier"] = [_outcome_data(outcome) for outcome in plan.earlier]
    return json.dumps(data)


def decode_plan(text: str) -> WorkerPlan:
    """Return the plan that :func:`encode_plan` wrote."""
    data = json.loads(text)
    settings = data.pop("settings")
    for name in _PATHS:
        settings[name] = Path(settings[name]) if settings[name] is not None else None
    for name in _TUPLES:
        settings[name] = tuple(settings[name])
    manifest = data.pop("manifest")
    files = [
        (path, [CatalogEntry(case_of(case), source, position) for case, source, position in entries])
        for path, entries in data.pop("files")
    ]
    earlier = [_outcome(given) for given in data.pop("earlier")]
    return WorkerPlan(
        settings=Settings(**settings),
        files=files,
        earlier=earlier,
        manifest=Manifest.model_validate(manifest) if manifest is not None else None,
        **data,
    )


def encode_outcome(outcome: Outcome) -> str:
    """Return an outcome as text."""
    return json.dumps(_outcome_data(outcome))


def decode_outcome(text: str) -> Outcome:
    """Return the outcome that :func:`encode_outcome` wrote."""
    return _outcome(json.loads(text))


def _entry_data(entry: CatalogEntry, in_memory: dict[str, list[str]]) -> list[Any]:
    data: dict[str, Any] = {}
    for name, value in case_fields(entry.case).items():
        try:
            data[name] = plain(value, name)
        except BadValueError:
            in_memory.setdefault(entry.case.id, []).append(name)
    return [data, entry.source, entry.position]


def case_fields(case: Case) -> dict[str, Any]:
    """Return the fields that a case was given, its author's own included."""
    known = {name: getattr(case, name) for name in type(case).model_fields if name in case.model_fields_set}
    return {**known, **(case.model_extra or {})}


def _outcome_data(outcome: Outcome) -> dict[str, Any]:
    data = {f.name: getattr(outcome, f.name) for f in fields(outcome)}
    data["kind"] = outcome.kind.value
    data["attachments"] = {name: base64.b64encode(v).decode("ascii") for name, v in outcome.attachments.items()}
    return data


def _outcome(data: dict[str, Any]) -> Outcome:
    data["key"] = tuple(data["key"])
    data["kind"] = Kind(data["kind"])
    data["attachments"] = {name: base64.b64decode(v) for name, v in data["attachments"].items()}
    return Outcome(**data)


def _relative(argument: object, base: Path, rootdir: Path) -> str:
    path, separator, names = str(argument).partition("::")
    return f"{os.path.relpath(os.path.abspath(base / path), rootdir)}{separator}{names}"
