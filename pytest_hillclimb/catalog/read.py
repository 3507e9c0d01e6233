"""Reading cases from a catalog file or from what a hook returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pytest_hillclimb.catalog.csv_text import parse_csv
from pytest_hillclimb.catalog.entry import CatalogEntry, FormatError, Record
from pytest_hillclimb.catalog.fields import case_of
from pytest_hillclimb.catalog.json_text import parse_json, parse_jsonl
from pytest_hillclimb.catalog.wording import CASES_WANTED, kind_of, quoted
from pytest_hillclimb.catalog.yaml_text import parse_yaml
from pytest_hillclimb.errors import BadValueError, CatalogError

_PARSERS: Mapping[str, Callable[[str], list[Record]]] = {
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
    ".json": parse_json,
    ".jsonl": parse_jsonl,
    ".csv": parse_csv,
}


def read_catalog(path: Path, shown: str) -> list[CatalogEntry]:
    """Return the cases of a catalog file, in the author's order.

    :param path: the file; its suffix says the format
    :param shown: how messages name the file
    :raises CatalogError: for anything that keeps a case from being read as its author meant it, in one line
    """
    try:
        records = _parser(path)(read_text(path))
    except FormatError as flaw:
        raise _error(shown, flaw.position, flaw.problem) from None
    except RecursionError:
        raise _error(shown, "", "is nested too deeply, or contains itself") from None
    if not records:
        raise _error(shown, "", "holds no cases")
    return [_entry(record, shown, in_memory=False) for record in records]


def entries_from(values: object, source: str) -> list[CatalogEntry]:
    """Return the cases that a hook returned, in its order.

    What a row stores (prompt, tags, attachments, meta) must be JSON; ``input``, ``expected`` and further fields may
    be anything. An exception of a generator is left to the caller.

    :param values: mappings or ``Case`` objects in any iterable, or a mapping whose key ``cases`` holds one
    :param source: how messages name the place of the hook
    :raises CatalogError: for anything that is no case, in one line
    """
    cases = values["cases"] if isinstance(values, Mapping) and "cases" in values else values
    if not isinstance(cases, Iterable) or isinstance(cases, (str, bytes, Mapping)):
        raise _error(source, "", f"{CASES_WANTED}; the hook returned {kind_of(cases)}")
    records = (Record(f"case {number}", fields) for number, fields in enumerate(cases, 1))
    entries = [_entry(record, source, in_memory=True) for record in records]
    if not entries:
        raise _error(source, "", "the hook returned no cases")
    return entries


def _parser(path: Path) -> Callable[[str], list[Record]]:
    suffix = path.suffix.lower()
    if suffix not in _PARSERS:
        raise FormatError(f"the suffix {quoted(suffix)} is none of {', '.join(_PARSERS)}")
    return _PARSERS[suffix]


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, with or without a byte-order mark.

    :raises FormatError: for a file that cannot be read or is not UTF-8
    """
    try:
        if path.exists() and not path.is_file():
            raise FormatError("is not a regular file")
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"the byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise FormatError(problem, f"line {line}") from None


def _entry(record: Record, source: str, *, in_memory: bool) -> CatalogEntry:
    try:
        return CatalogEntry(case_of(record.fields, in_memory=in_memory), source, record.position)
    except BadValueError as error:
        raise _error(source, record.position_of(error.path), error.message) from None


def _error(source: str, position: str, problem: str) -> CatalogError:
    where = f"{source}, {position}" if position else source
    return CatalogError(" ".join(f"{where}: {problem}".splitlines()))
