"""Ids on disk of cases as run by candidates: every pair must have rows, traces and references of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_hillclimb.catalog.check import REFERENCE_SUFFIXES
from pytest_hillclimb.catalog.entry import CatalogEntry
from pytest_hillclimb.catalog.wording import quoted
from pytest_hillclimb.errors import ManifestError
from pytest_hillclimb.model.candidate import Candidate
from pytest_hillclimb.schedule.plan import prompt_id

_Pair = tuple[CatalogEntry, Candidate]


def check_prompt_ids(entries: Sequence[CatalogEntry], candidates: Iterable[Candidate]) -> None:
    """Refuse cases and candidates of which two pairs would share a file or a row.

    Letter case is ignored, because some file systems do. Every candidate of a manifest counts, active or not: a flow
    keeps what other rotations wrote.

    :param entries: cases that have passed ``check_cases``
    :raises ManifestError: naming both pairs
    """
    owners: dict[str, _Pair] = {}
    for candidate in candidates:
        for entry in entries:
            pair = entry, candidate
            owner = owners.setdefault(prompt_id(entry.case, candidate).lower(), pair)
            if owner is not pair:
                raise _error(owner, pair, f"would share the id {quoted(prompt_id(entry.case, candidate))}")
    for name, pair in owners.items():
        for suffix in REFERENCE_SUFFIXES:
            if other := owners.get(name + suffix):
                shared = prompt_id(other[0].case, other[1])
                raise _error(pair, other, f"would share the reference file {quoted(shared)}")


def _error(first: _Pair, second: _Pair, problem: str) -> ManifestError:
    one, other = (
        f"case {quoted(entry.case.id)} ({entry.where}) with candidate {quoted(candidate.id)}"
        for entry, candidate in (first, second)
    )
    return ManifestError(f"{one} and {other} {problem}; rename a case or a candidate")
