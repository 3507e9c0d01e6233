"""What the readers hand on: a record is a case as it is spelled, an entry is a case and where it came from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_hillclimb.model.case import Case


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A case and its origin.

    ``source`` is the file as it is shown to people, ``position`` a place in it such as ``line 7`` or ``case 3``.
    """

    case: Case
    source: str
    position: str

    @property
    def where(self) -> str:
        """The origin in words, such as ``evals/catalog.yaml, line 7``."""
        return f"{self.source}, {self.position}"


@dataclass(frozen=True, slots=True)
class Record:
    """One case as its author spelled it, not checked yet; ``lines`` says where its fields are, if the format tells."""

    position: str
    fields: object
    lines: Mapping[str, int] = field(default_factory=dict)

    def position_of(self, path: str) -> str:
        """Return the position of the field in which *path*, such as ``meta.budget[2]``, starts."""
        line = self.lines.get(re.split(r"[.\[]", path, maxsplit=1)[0])
        return self.position if line is None else f"line {line}"


class FormatError(Exception):
    """A text is not what its format allows; ``position`` is empty for a flaw of the file as a whole."""

    def __init__(self, problem: str, position: str = "") -> None:
        super().__init__(problem, position)
        self.problem = problem
        self.position = position
