"""JSON and JSON lines, strict where Python's reader is lenient: no doubled keys, and no broken line is skipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pytest_hillclimb.catalog.entry import FormatError, Record
from pytest_hillclimb.catalog.wording import CASES_WANTED, kind_of


class _Doubled:
    """Stands for the value of a key that one object has more than once."""


_DOUBLED = _Doubled()


def parse_json(text: str) -> list[Record]:
    """Return the records of a JSON text: a list of cases, or an object whose key ``cases`` holds one.

    :raises FormatError: for a text that is no JSON or has another shape
    """
    if not text.strip():
        return []
    top = _loads(text)
    cases = top["cases"] if isinstance(top, dict) and "cases" in top else top
    if not isinstance(cases, list):
        _refuse_doubled(cases, "cases", "")
        raise FormatError(f"{CASES_WANTED}; got {kind_of(cases)}")
    records = [Record(f"case {number}", fields) for number, fields in enumerate(cases, 1)]
    for record in records:
        _refuse_doubled(record.fields, "", record.position)
    return records


def parse_jsonl(text: str) -> list[Record]:
    """Return the records of JSON lines, one object a line; blank lines are skipped.

    Only a line feed ends a line, since JSON texts may hold every other line separator of Unicode.

    :raises FormatError: for a line that is no JSON
    """
    numbered = [(f"line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip(" \t\r")]
    return [Record(position, decode(line, position)) for position, line in numbered]


def decode(text: str, position: str, path: str = "") -> Any:
    """Return the value of a JSON text that stands at *position*.

    :param path: name of the field that holds the text, if it is one
    :raises FormatError: for a text that is no JSON, and for an object with a doubled key
    """
    value = _loads(text, position, f"{path}: " if path else "")
    _refuse_doubled(value, path, position)
    return value


def _loads(text: str, position: str = "", prefix: str = "") -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    except json.JSONDecodeError as error:
        problem = f"{prefix}not valid JSON at column {error.colno}: {error.msg}"
        raise FormatError(problem, position or f"line {error.lineno}") from None


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # Python reads no more than some thousands of digits
        return float(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, member in pairs:
        value[name] = _DOUBLED if name in value else member
    return value


def _refuse_doubled(value: Any, path: str, position: str) -> None:
    if value is _DOUBLED:
        raise FormatError(f"{path}: the key appears twice in one object", position)
    for step, member in _members(value):
        _refuse_doubled(member, f"{path}{step}".removeprefix("."), position)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f".{name}", member) for name, member in value.items())
    elif isinstance(value, list):
        yield from ((f"[{i}]", member) for i, member in enumerate(value))
