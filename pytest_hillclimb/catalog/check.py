"""Checks of a whole set of cases: every case must have rows, traces and references of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pytest_hillclimb.catalog.entry import CatalogEntry
from pytest_hillclimb.catalog.wording import quoted
from pytest_hillclimb.errors import CatalogError, StateError
from pytest_hillclimb.model.ids import path_safe
from pytest_hillclimb.model.state import LoopState

REFERENCE_SUFFIXES = (".html", ".txt", ".json")
"""A reference is looked up as ``<id>``, then with each of these."""

_MAX_NOTES = 5


def check_cases(entries: Sequence[CatalogEntry]) -> None:
    """Refuse a set of cases in which two would share a file or a row.

    Letter case is ignored throughout, because some file systems do.

    :raises CatalogError: naming both ids and both places
    """
    owners: dict[str, CatalogEntry] = {}
    for entry in entries:
        safe = entry.case.safe_id
        if safe in (".", ".."):
            raise CatalogError(f"{entry.where}: the id {quoted(entry.case.id)} cannot name a file; write another one")
        owner = owners.setdefault(safe.lower(), entry)
        if owner is not entry:
            raise _twins(owner, entry)
    for entry in entries:
        for suffix in REFERENCE_SUFFIXES:
            if other := owners.get(entry.case.safe_id.lower() + suffix):
                raise _pair(entry, other, f"would share the reference file {quoted(other.case.safe_id)}")


def check_splits(state: LoopState, entries: Sequence[CatalogEntry], row_ids: Collection[str] = ()) -> list[str]:
    """Return notes on the split ids that no loaded case has: one for each, or one for all when there are many.

    :param row_ids: the ids that rows have, where these are not those of the cases; a case's id then gets a note too
    :raises StateError: for a split id that no case can ever have on disk, with the id to write instead
    """
    cases = {entry.case.safe_id for entry in entries}
    given = [(key, id_) for key, ids in state.splits.items() for id_ in ids]
    unknown = [(key, id_) for key, id_ in given if id_ not in cases and id_ not in row_ids]
    for key, id_ in unknown:
        if not id_:
            raise StateError(f"_state.json: {key} holds an empty id")
        if path_safe(id_) != id_:
            wanted = quoted(path_safe(id_))
            raise StateError(f"_state.json: {key} holds {quoted(id_)}, which is no id on disk; write {wanted} instead")
    notes = [_of_cases(given, cases)] if row_ids and any(id_ in cases for _, id_ in given) else []
    if len(unknown) > _MAX_NOTES:
        named = ", ".join(quoted(id_) for _, id_ in unknown[:_MAX_NOTES])
        return [*notes, f"{len(unknown)} split ids match no loaded case (in _state.json): {named}, ..."]
    return [*notes, *(f"split id {quoted(id_)} matches no loaded case ({key} in _state.json)" for key, id_ in unknown)]


def _of_cases(given: Sequence[tuple[str, str]], cases: Collection[str]) -> str:
    count = sum(id_ in cases for _, id_ in given)
    return (
        f"split ids that name cases: {count} (in _state.json); with a candidate manifest rows have the ids "
        "<case>.<candidate>, by which report builders join them, so these will be found by this plugin alone"
    )


def _twins(first: CatalogEntry, second: CatalogEntry) -> CatalogError:
    if first.case.id == second.case.id:
        return CatalogError(f"the id {quoted(first.case.id)} is used twice: {first.where} and {second.where}")
    if first.case.safe_id == second.case.safe_id:
        return _pair(first, second, f"have the same name on disk, {quoted(first.case.safe_id)}")
    return _pair(first, second, "differ only in letter case")


def _pair(first: CatalogEntry, second: CatalogEntry, problem: str) -> CatalogError:
    one, other = (f"{quoted(entry.case.id)} ({entry.where})" for entry in (first, second))
    return CatalogError(f"the ids {one} and {other} {problem}; rename one of them")
