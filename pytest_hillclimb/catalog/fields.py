"""From the fields an author gave to a case: ids and tags become text, optional fields that are null are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pytest_hillclimb.catalog.wording import kind_of
from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.ids import id_text
from pytest_hillclimb.model.jsonable import plain

# What rows carry must be JSON; input, expected and fields of the author's own are only handed to the user's functions.
_STORED = ("id", "prompt", "tags", "attachments", "meta")


def case_of(fields: object, *, in_memory: bool = False) -> Case:
    """Return the case that has these fields.

    Fields that a case does not know are kept in ``case.model_extra``, whatever they are called. A ``Case``, also one
    of a subclass, becomes a plain ``Case`` with the same fields, as it would on its way to another process.

    :param fields: a mapping, or a ``Case``
    :param in_memory: whether the fields that no row stores may be anything, not only JSON
    :raises BadValueError: for the first field that cannot be used
    """
    if isinstance(fields, Case):
        fields = _given(fields)
    if not isinstance(fields, Mapping):
        raise _flaw("", f"expected a mapping of fields with an id, got {kind_of(fields)}")
    if odd := [name for name in fields if not isinstance(name, str)]:
        raise _flaw("", f"the name of a field must be a text, not {kind_of(odd[0])}")
    kept = {name: value for name, value in fields.items() if value is not None or name not in _STORED}
    kept |= {name: plain(value, name) for name, value in kept.items() if name in _STORED or not in_memory}
    kept["id"] = _id(kept.get("id"), given="id" in fields)
    if "tags" in kept:
        kept["tags"] = _tags(kept["tags"])
    _check_kind(kept, "meta", dict, "a mapping")
    _check_kind(kept, "attachments", list, "a list of mappings with kind and ref")
    return _validated(kept)


def _given(case: Case) -> dict[str, Any]:
    own = type(case).model_fields.keys() - Case.model_fields.keys()
    names = [name for name in type(case).model_fields if name in own or name in case.model_fields_set]
    return {name: getattr(case, name) for name in names} | (case.model_extra or {})


def _id(value: Any, *, given: bool) -> str:
    if not given:
        raise _flaw("id", "is missing; every case needs one, and it should never change")
    if value is None:
        raise _flaw("id", "is null; give the case a text, in quotes if need be")
    if value == "":
        raise _flaw("id", "is empty; give the case a text")
    if not isinstance(value, (str, int, float)):
        raise _flaw("id", f"must be a text or a number, not {kind_of(value)}")
    return id_text(value)


def _tags(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise _flaw("tags", f"must be a text or a list of texts, not {kind_of(value)}")
    for i, tag in enumerate(value):
        if not isinstance(tag, (str, int, float)):
            raise _flaw(f"tags[{i}]", f"must be a text, not {kind_of(tag)}")
    return [id_text(tag) for tag in value]


def _check_kind(fields: Mapping[str, Any], name: str, kind: type, wanted: str) -> None:
    if name in fields and not isinstance(fields[name], kind):
        raise _flaw(name, f"must be {wanted}, not {kind_of(fields[name])}")


def _validated(fields: dict[str, Any]) -> Case:
    try:
        return Case.model_validate(fields)
    except ValidationError as error:
        flaw = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in flaw["loc"])
        raise BadValueError.at(path.removeprefix("."), flaw["msg"]) from None


def _flaw(field: str, problem: str) -> BadValueError:
    return BadValueError(f"{field} {problem}".strip(), path=field, reason=problem)
