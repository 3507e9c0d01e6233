"""What a variant has recorded already: the slots that a resume leaves alone, and the grades behind its means.

Pattern: one pass over ``results.jsonl`` keeps a few values per row and the place of its line; the row itself is read
again from there when it is wanted.

Accepted trade-offs: the first of several rows for a slot counts, because nothing tells which of them is better; in
means they all do, as they do for report builders, except a row that was merely written again;
``Recorded.load`` needs a file that only grew since.

Scope: rows of this plugin and of other tools that write the format (an id under ``id`` or ``case_id``, no ``rep``, a
bare grade). They are read as they are and never rewritten.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pytest_hillclimb.errors import HillclimbError
from pytest_hillclimb.flow.document import decode
from pytest_hillclimb.flow.journal import Line, Scan
from pytest_hillclimb.flow.layout import RESULTS
from pytest_hillclimb.flow.safe import SafeDir, refused
from pytest_hillclimb.model.ids import id_text

Key = tuple[str, int]
"""A slot: ``prompt_id`` and ``rep``."""


class RecordedRow(NamedTuple):
    """The row that fills a slot: where its line lies, its verdict, and what it says of itself."""

    offset: int
    length: int
    passed: bool | None
    status: str | None
    model: str | None


class Score(NamedTuple):
    """The grades of one row as numbers, for means."""

    prompt_id: str
    status: str | None
    grade: dict[str, float]


@dataclass
class Recorded:
    """What ``results.jsonl`` holds, with counts of what fills no slot."""

    directory: SafeDir | None = None
    """The directory of the variant, None when it does not exist."""
    rows: dict[Key, RecordedRow] = field(default_factory=dict)
    """The slots that are filled."""
    scores: list[Score] = field(default_factory=list)
    """Every row that has an id, in file order, whether it fills a slot or not: report builders average them all. A row
    that only repeats the one of its slot is the same measurement and is left out."""
    errors: int = 0
    """Rows with the status ``error``: they hold no score and fill no slot."""
    duplicates: int = 0
    """Rows for a slot that an earlier row fills."""
    ignored: int = 0
    """Rows without a usable id or rep."""
    broken: int = 0
    """Lines that are no JSON object."""

    stamp: tuple[int, int, int] | None = None
    """Inode, size and time of change of the file that was read, None if there was none."""

    def is_current(self, directory: SafeDir | None) -> bool:
        """Return whether the file in *directory* is the one that was read, and has not changed since."""
        return self.directory is not None and self.directory is directory and self.stamp == _stamp(directory)

    def load(self, key: Key) -> dict[str, Any]:
        """Return the whole row that fills a slot, read from the file.

        :raises KeyError: if no row fills the slot
        :raises HillclimbError: if the row is no longer where it was read
        """
        row = self._reread(self.rows[key])
        if not isinstance(row, dict) or _key(row) != key:
            raise HillclimbError(f"{RESULTS} was changed during the run: the row of {key[0]} rep{key[1]} is gone")
        return row

    def repeats(self, line: Line) -> bool:
        """Return whether a line holds the very row that fills its slot; rows that do not name their rep may be of any.

        :param line: a line of the file that is being read
        """
        key = _key(line.row) if line.row.get("rep") is not None else None
        first = self.rows.get(key) if key is not None else None
        if first is None or first.length != line.length:
            return False
        return bool(self._reread(first) == line.row)

    def _reread(self, place: RecordedRow) -> Any:
        """Return what is at the place of a row now, None if that is no JSON."""
        file = self.directory.reader(RESULTS) if self.directory else None
        if file is None:
            return None
        with file:
            file.seek(place.offset)
            data = file.read(place.length)
        try:
            return decode(data.decode())
        except ValueError:
            return None


def read_recorded(directory: SafeDir | None) -> Recorded:
    """Return what the variant in *directory* has recorded.

    :param directory: the directory of the variant, None if it does not exist
    :raises UnsafePathError: if the results file is a link or no regular file
    :raises RefusedError: if it cannot be read
    """
    recorded = Recorded(directory)
    if directory is None:
        return recorded
    recorded.stamp = _stamp(directory)
    with refused(f"cannot read {directory.path_of(RESULTS)}"):
        file = directory.reader(RESULTS)
        if file is not None:
            with file:
                scan = Scan(file)
                for line in scan:
                    _take(recorded, line)
                recorded.broken = scan.broken
    return recorded


def _stamp(directory: SafeDir) -> tuple[int, int, int] | None:
    status = directory.check(RESULTS)
    return None if status is None else (status.st_ino, status.st_size, status.st_mtime_ns)


def numbers(grade: object) -> dict[str, float]:
    """Return a recorded grade as ``{metric: number}``; a bare value is ``score``, what is no number is left out."""
    items = grade.items() if isinstance(grade, dict) else [("score", grade)]
    return {sys.intern(metric): number for metric, value in items if (number := _number(value)) is not None}


def verdict(row: Mapping[str, Any]) -> bool | None:
    """Return whether a recorded row passed, or None if it has no notion of that."""
    passed, grade = row.get("passed"), row.get("grade")
    if isinstance(passed, bool):
        return passed
    if isinstance(grade, bool):
        return grade
    metric = _number(grade.get("pass")) if isinstance(grade, dict) else None
    return None if metric is None else metric == 1


def _take(recorded: Recorded, line: Line) -> None:
    row = line.row
    prompt_id = _prompt_id(row)
    if prompt_id is None:
        recorded.ignored += 1
        return
    status, key = _text(row.get("status")), _key(row)
    if not recorded.repeats(line):
        recorded.scores.append(Score(prompt_id, status, numbers(row.get("grade"))))
    if key is None:
        recorded.ignored += 1
    elif status == "error":
        recorded.errors += 1
    elif key in recorded.rows:
        recorded.duplicates += 1
    else:
        place = RecordedRow(line.offset, line.length, verdict(row), status, _text(row.get("model")))
        recorded.rows[key] = place


def _key(row: Mapping[str, Any]) -> Key | None:
    prompt_id, rep = _prompt_id(row), row.get("rep")
    if rep is None:
        rep = 0
    if prompt_id is None or isinstance(rep, bool) or not isinstance(rep, (int, float)) or rep < 0 or rep % 1:
        return None
    return prompt_id, int(rep)


def _prompt_id(row: Mapping[str, Any]) -> str | None:
    for name in ("prompt_id", "id", "case_id"):
        value = row.get(name)
        if value is not None:
            text = id_text(value) if isinstance(value, (str, int, float)) else ""
            return text if text.strip() else None
    return None


def _number(value: object) -> float | None:
    if not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _text(value: object) -> str | None:
    return None if value is None else sys.intern(str(value))
