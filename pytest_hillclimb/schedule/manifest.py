"""Reading a candidate manifest: checked as a whole, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_hillclimb.catalog.entry import FormatError
from pytest_hillclimb.catalog.json_text import decode
from pytest_hillclimb.catalog.located import Located, Steps
from pytest_hillclimb.catalog.read import read_text
from pytest_hillclimb.catalog.wording import quoted
from pytest_hillclimb.catalog.yaml_text import parse_yaml_value
from pytest_hillclimb.errors import ManifestError
from pytest_hillclimb.model.candidate import Manifest
from pytest_hillclimb.model.ids import id_text
from pytest_hillclimb.model.redaction import secret_shaped
from pytest_hillclimb.schedule.manifest_text import ManifestText
from pytest_hillclimb.schedule.manifest_wording import SECTIONS, expected, field_text, got, is_opaque, is_text, unknown


def read_manifest(path: Path, shown: str) -> Manifest:
    """Return the candidates of a YAML or JSON file, in the author's order.

    Ids, models and the other texts are what was typed; a key that is null counts as absent.

    :param path: the file; its suffix says the format
    :param shown: how messages name the file
    :raises ManifestError: for anything that keeps a candidate from being run as its author meant it, in one line
    """
    try:
        text = ManifestText(shown, _located(path))
        _refuse_unsafe(text)
        return _manifest(text, shown)
    except FormatError as flaw:
        where = f"{shown}, {flaw.position}" if flaw.position else shown
        hidden = "cannot be read, and the place looks like a credential, so it is not shown"
        problem = hidden if secret_shaped(flaw.problem) else flaw.problem
        raise ManifestError(" ".join(f"{where}: {problem}".splitlines())) from None
    except RecursionError:
        raise ManifestError(f"{shown}: is nested too deeply, or contains itself") from None


def _located(path: Path) -> Located:
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return parse_yaml_value(read_text(path), is_text)
    if suffix == ".json":
        return Located(decode(read_text(path), ""))
    raise FormatError(f"the suffix {quoted(suffix)} is none of .yaml, .yml, .json")


def _refuse_unsafe(text: ManifestText) -> None:
    """Refuse what looks like a credential, and numbers that JSON cannot hold, wherever they are."""
    remedy = "looks like a credential; keep it in the environment and name the variable in qualification.required_env"
    for path, value in _parts(text.value, ()):
        if isinstance(value, Mapping) and any(map(secret_shaped, value)):
            raise text.error(path, f"has a key that {remedy}")
        if isinstance(value, str) and secret_shaped(value):
            raise text.error(path, remedy)
        if isinstance(value, float) and not math.isfinite(value):
            raise text.error(path, f"must be {expected(path)}, got {value!r}")


def _parts(value: object, path: Steps) -> Iterator[tuple[Steps, object]]:
    yield path, value
    members = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        yield from _parts(member, (*path, step))


def _manifest(text: ManifestText, shown: str) -> Manifest:
    data = {} if text.value is None else _prepared(text.value, ())
    if not isinstance(data, dict):
        raise text.error((), f"must be a mapping with {' and '.join(SECTIONS)}, got {got(data)}")
    for name in data:
        if name not in SECTIONS:
            raise text.error((name,), unknown((name,)))
    _assign_slots(text, data)
    try:
        manifest = Manifest.model_validate({**data, "source": shown})
    except ValidationError as error:
        raise _flaw(text, error) from None
    _refuse_twins(text, manifest)
    return manifest


def _prepared(value: Any, path: Steps) -> Any:
    """Return *value* with numbers for text as text, and without keys that are null."""
    if isinstance(value, dict) and not (is_opaque(path) and path[0] == "slots"):
        return {name: _prepared(member, (*path, name)) for name, member in value.items() if member is not None}
    if isinstance(value, list) and not is_opaque(path):
        return [_prepared(member, (*path, i)) for i, member in enumerate(value)]
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    return id_text(value) if numeric and is_text(path) else value


def _assign_slots(text: ManifestText, data: Mapping[str, Any]) -> None:
    for i, slot in enumerate(_list(data.get("slots"))):
        own = slot.get("id") if isinstance(slot, dict) else None
        for j, candidate in enumerate(_list(slot.get("candidates")) if own is not None else ()):
            if isinstance(candidate, dict) and candidate.setdefault("slot_id", own) != own:
                problem = f"is {got(candidate['slot_id'])}, but the candidate is listed in slot {got(own)}"
                raise text.error(("slots", i, "candidates", j, "slot_id"), f"{problem}; leave slot_id out")


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _flaw(text: ManifestText, error: ValidationError) -> ManifestError:
    """Return the first flaw; a misspelt key goes before what is missing for it."""
    flaws = error.errors(include_url=False, include_context=False)
    flaw = min(flaws, key=lambda each: each["type"] != "extra_forbidden")
    path: Steps = flaw["loc"]
    if flaw["type"] == "extra_forbidden":
        return text.error(path, unknown(path))
    if flaw["type"] == "missing":
        return text.error(path, f"is missing; it must be {expected(path)}")
    return text.error(path, f"must be {expected(path)}, got {got(flaw['input'])}")


def _refuse_twins(text: ManifestText, manifest: Manifest) -> None:
    slots: dict[str, tuple[str, Steps]] = {}
    candidates: dict[str, tuple[str, Steps]] = {}
    for i, slot in enumerate(manifest.slots):
        _refuse_twin(text, slots, slot.id, ("slots", i, "id"))
        for j, candidate in enumerate(slot.candidates):
            _refuse_twin(text, candidates, candidate.id, ("slots", i, "candidates", j, "id"))


def _refuse_twin(text: ManifestText, owners: dict[str, tuple[str, Steps]], id_: str, path: Steps) -> None:
    other, place = owners.setdefault(id_.lower(), (id_, path))
    if place != path:
        problem = "is used twice" if other == id_ else f"differs from {got(other)} only in letter case"
        raise text.error(path, f"{problem}: the other is {field_text(place)}{text.line_text(place)}; rename one")
