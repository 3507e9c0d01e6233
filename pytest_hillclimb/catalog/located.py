"""A file as one value, in which every part knows the line it stands on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Steps = tuple[str | int, ...]
"""How to get from the value of a file to a part of it: names of mappings, places in lists."""

AsText = Callable[[Steps], bool]
"""Says whether the scalar at a path is text, whatever it looks like."""


@dataclass(frozen=True, slots=True)
class Located:
    """The value of a file; ``lines`` has the line of each part of it, and is empty if the format does not tell."""

    value: Any
    lines: Mapping[Steps, int] = field(default_factory=dict)

    def line_of(self, path: Steps) -> int | None:
        """Return the line of the innermost part around *path* that has one."""
        return next((self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), None)
