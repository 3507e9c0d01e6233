"""CSV: every cell is text, except ``tags`` (split at ``;`` and ``,``) and ``meta`` and ``attachments`` (JSON)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from pytest_hillclimb.catalog.entry import FormatError, Record
from pytest_hillclimb.catalog.json_text import decode
from pytest_hillclimb.catalog.wording import quoted

_Row = tuple[int, list[str]]


def parse_csv(text: str) -> list[Record]:
    """Return the records of a CSV text whose first row names the columns.

    An empty cell is a field that is absent, and so is a cell that its row does not reach; an empty id stays, to be
    refused. Blank lines are skipped.

    :raises FormatError: for a header or a row that cannot be read without guessing
    """
    rows = _rows(text)
    if not rows:
        return []
    columns = _columns(*rows[0])
    return [Record(f"line {line}", _fields(columns, cells, f"line {line}")) for line, cells in rows[1:]]


def _rows(text: str) -> list[_Row]:
    """Return each row that is not blank with the line it starts on."""
    usual_limit = csv.field_size_limit(len(text) + 1)  # a long prompt is no flaw
    rows: list[_Row] = []
    line = 1
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        for cells in reader:
            if len(cells) > 1 or any(cell.strip() for cell in cells):
                rows.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise FormatError(f"not valid CSV: {error}", f"line {line}") from None
    finally:
        csv.field_size_limit(usual_limit)
    return rows


def _columns(line: int, cells: Sequence[str]) -> list[str]:
    columns = [cell.strip() for cell in cells]
    for number, name in enumerate(columns, 1):
        if not name:
            raise FormatError(f"column {number} has no name", f"line {line}")
        if name in columns[: number - 1]:
            raise FormatError(f"two columns are called {quoted(name)}", f"line {line}")
    if "id" not in columns:
        found = ", ".join(quoted(name) for name in columns[:20])
        raise FormatError(f"no column is called 'id'; columns are separated by commas; found {found}", f"line {line}")
    return columns


def _fields(columns: Sequence[str], cells: Sequence[str], position: str) -> dict[str, Any]:
    if len(cells) > len(columns):
        problem = f"{len(cells)} cells for {len(columns)} columns; put quotes around a cell that holds a comma"
        raise FormatError(problem, position)
    given = [(name, cell) for name, cell in zip(columns, cells, strict=False) if cell or name == "id"]
    return {name: _value(name, cell, position) for name, cell in given}


def _value(name: str, cell: str, position: str) -> Any:
    if name == "tags":
        return [tag.strip() for tag in re.split("[;,]", cell) if tag.strip()]
    if name in ("meta", "attachments"):
        return decode(cell, position, name)
    return cell
