"""The loop state: what ``_state.json`` says, read only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_hillclimb.errors import StateError
from pytest_hillclimb.model.ids import id_text


@dataclass(frozen=True, slots=True)
class LoopState:
    """The keys that this plugin acts on, and in ``raw`` the whole state as the loop wrote it."""

    train_ids: tuple[str, ...]
    val_ids: tuple[str, ...]
    test_ids: tuple[str, ...]
    harness_sha: str | None
    harness_paths: tuple[str, ...]
    raw: Mapping[str, Any]

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> LoopState:
        """Return the state that a parsed ``_state.json`` holds; a key that is null counts as absent.

        :raises StateError: for a key whose value is of another kind than it must be
        """
        return cls(
            train_ids=_ids(raw, "train_ids"),
            val_ids=_ids(raw, "val_ids"),
            test_ids=_ids(raw, "test_ids"),
            harness_sha=_sha(raw),
            harness_paths=_paths(raw),
            raw=MappingProxyType(dict(raw)),
        )

    @property
    def splits(self) -> Mapping[str, tuple[str, ...]]:
        """The split lists by the key they have in the file."""
        return {"train_ids": self.train_ids, "val_ids": self.val_ids, "test_ids": self.test_ids}


def _ids(raw: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = _list(raw, key, "ids")
    for i, value in enumerate(values):
        if not isinstance(value, (str, int, float)):
            raise StateError(f"_state.json: {key}[{i}] must be an id, not {_kind(value)}")
    return tuple(id_text(value) for value in values)


def _paths(raw: Mapping[str, Any]) -> tuple[str, ...]:
    values = _list(raw, "harness_paths", "paths")
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise StateError(f"_state.json: harness_paths[{i}] must be a path, not {_kind(value)}")
        if not value.strip() or "\0" in value:
            raise StateError(f"_state.json: harness_paths[{i}] is empty or holds a NUL; name a file or directory")
    return tuple(values)


def _list(raw: Mapping[str, Any], key: str, of: str) -> list[Any]:
    value = raw.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise StateError(f"_state.json: {key} must be a list of {of}, not {_kind(value)}")
    return value


def _sha(raw: Mapping[str, Any]) -> str | None:
    value = raw.get("harness_sha")
    if value is None or isinstance(value, str):
        return value
    raise StateError(f"_state.json: harness_sha must be a text, not {_kind(value)}")


def _kind(value: object) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def read_only(value: Any) -> Any:
    """Return JSON data that nobody can change for others: mappings as read-only views, lists as tuples."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: read_only(item) for key, item in value.items()})
    return tuple(read_only(item) for item in value) if isinstance(value, list) else value
