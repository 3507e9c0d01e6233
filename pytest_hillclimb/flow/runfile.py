"""``run.json``, what a variant was run with, and ``summary.json``, the header that reports show.

Pattern: read, merge, replace at once. ``run.json`` belongs to this plugin, which renews its own facts and keeps keys it
does not know; ``summary.json`` belongs to people, and only gets keys that it lacks.

Accepted trade-offs: a changed file is laid out anew (an indent of two); an edit made during the merge is lost.

Scope: both files of one variant. A directory with rows and no ``run.json`` comes from another tool and is adopted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_hillclimb.errors import RefusedError
from pytest_hillclimb.flow import document
from pytest_hillclimb.flow.layout import ERRORS, RESULTS, RUN, SUMMARY
from pytest_hillclimb.flow.safe import SafeDir, refused
from pytest_hillclimb.model.settings import MAIN


def check_model(
    directory: SafeDir | None, model: str | None, has_rows: bool, candidates: Mapping[str, str | None] | None = None
) -> None:
    """Refuse to add rows of another model to those that a variant has.

    :param directory: the directory of the variant, None if it does not exist
    :param model: the requested model, None if none was
    :param has_rows: whether rows are recorded
    :param candidates: the model of each candidate of this run by its id, kept under ``candidates``; None for a run of
        the one model
    :raises RefusedError: if the rows were made with another model, or ``run.json`` cannot be read
    """
    if directory is None:
        return
    run = _read(directory, RUN)
    if not run or not has_rows:
        return
    if candidates is None and "model" in run and run["model"] != model:
        raise _other_model(directory, "the rows", run["model"], model)
    known = run.get("candidates")
    for name, wanted in (candidates or {}).items():
        if isinstance(known, dict) and name in known and known[name] != wanted:
            raise _other_model(directory, f"rows of the candidate {name}", known[name], wanted)


def recorded_matrix(directory: SafeDir | None) -> Mapping[str, Any] | None:
    """Return the schedule, rotation and seed that a variant was last run with, None if it does not say.

    :raises RefusedError: if ``run.json`` cannot be read
    """
    matrix = _read(directory, RUN).get("matrix") if directory is not None else None
    return matrix if isinstance(matrix, dict) else None


def write_run(directory: SafeDir, facts: Mapping[str, Any]) -> None:
    """Record what the variant is run with.

    Kept from what is there: ``created_at``, keys that *facts* does not have, and candidates that are not in this run.

    :raises RefusedError: if ``run.json`` cannot be read or written
    """
    old = _read(directory, RUN)
    new = {**old, **facts}
    if "created_at" in old:
        new["created_at"] = old["created_at"]
    if isinstance(old.get("candidates"), dict) and isinstance(facts.get("candidates"), Mapping):
        new["candidates"] = {**old["candidates"], **facts["candidates"]}
    if new != old:
        _write(directory, RUN, new)


def check_lane(directory: SafeDir | None, lane: str) -> None:
    """Refuse to add rows of one lane to those of another.

    :param directory: the directory of the variant, None if it does not exist
    :param lane: the lane of this run; rows that no ``run.json`` tells about are of the main lane
    :raises RefusedError: if there are rows of another lane, or ``run.json`` cannot be read
    """
    if directory is None or not (filled := _filled(directory)):
        return
    found = _read(directory, RUN).get("lane", MAIN)
    if found != lane:
        text = f"{directory.path_of(filled[0])} holds rows of the lane {found}, this run is of the lane {lane}"
        raise RefusedError(f"{text}: name another flow, or move that directory away", recorded=found, wanted=lane)


def clear_rows(directory: SafeDir) -> None:
    """Empty the rows of a variant, as a check of the grader is made anew each time.

    :raises RefusedError: if they cannot be emptied
    """
    for name in _filled(directory):
        with refused(f"cannot empty {directory.path_of(name)}"):
            directory.overwrite(name, b"")


def add_summary(directory: SafeDir, header: Mapping[str, Any]) -> str | None:
    """Add to ``summary.json`` the keys of *header* that it lacks.

    :return: why nothing could be added, as a warning, or None
    """
    try:
        old = _read(directory, SUMMARY)
        added = {key: value for key, value in header.items() if key not in old}
        if added:
            _write(directory, SUMMARY, {**old, **added})
    except RefusedError as error:
        return f"{error.message}; nothing was added to it"
    return None


def _filled(directory: SafeDir) -> list[str]:
    """Return the files of rows that are not empty."""
    return [name for name in (RESULTS, ERRORS) if (status := directory.check(name)) is not None and status.st_size]


def _read(directory: SafeDir, name: str) -> dict[str, Any]:
    shown = directory.path_of(name)
    with refused(f"cannot read {shown}"):
        data = directory.read(name)
    if data is None:
        return {}
    try:
        value = document.parse(data)
    except ValueError as error:
        raise RefusedError(f"{shown} {error}", path=shown) from None
    if not isinstance(value, dict):
        raise RefusedError(f"{shown} must hold a JSON object, not a {type(value).__name__}", path=shown)
    return value


def _write(directory: SafeDir, name: str, value: Mapping[str, Any]) -> None:
    with refused(f"cannot write {directory.path_of(name)}"):
        directory.replace(name, document.render(value))


def _other_model(directory: SafeDir, what: str, recorded: object, wanted: str | None) -> RefusedError:
    text = (
        f"{what} in {directory.shown} were made with {recorded or 'no requested model'}, this run asks for "
        f"{wanted or 'none'}: use the same model, or another variant"
    )
    return RefusedError(text, recorded=recorded, wanted=wanted)
