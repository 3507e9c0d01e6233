"""A manifest as its author wrote it: where in the file a flaw is."""

from __future__ import annotations

from typing import Any

from pytest_hillclimb.catalog.located import Located, Steps
from pytest_hillclimb.catalog.wording import quoted
from pytest_hillclimb.errors import ManifestError
from pytest_hillclimb.model.redaction import secret_shaped
from pytest_hillclimb.schedule.manifest_wording import field_text


class ManifestText:
    """The value of a manifest's file, and how messages name its parts.

    :param shown: how messages name the file
    """

    def __init__(self, shown: str, located: Located) -> None:
        self.value = located.value
        self._shown = shown
        self._located = located

    def error(self, path: Steps, problem: str) -> ManifestError:
        """Return the error for the part at *path*, in one line.

        Its fields: ``line``, ``slot``, ``candidate`` and ``field``, None for what does not apply.
        """
        line = self._located.line_of(path)
        in_slot = path[:1] == ("slots",) and len(path) > 1
        in_candidate = in_slot and path[2:3] == ("candidates",) and len(path) > 3
        owners = [("slot", path[:2])] * in_slot + [("candidate", path[:4])] * in_candidate
        place = ", ".join(self._name(kind, owner) for kind, owner in owners)
        field = field_text(path[4:] if in_candidate else path[2:] if in_slot else path)
        where = f"{self._shown}, line {line}" if line is not None else self._shown
        message = ": ".join(part for part in (where, place, f"{field} {problem}".strip()) if part)
        return ManifestError(
            " ".join(message.splitlines()),
            line=line,
            slot=self._id(path[:2]) if in_slot else None,
            candidate=self._id(path[:4]) if in_candidate else None,
            field=field or None,
        )

    def line_text(self, path: Steps) -> str:
        """Return where *path* is, as an addition in brackets; empty if the format does not tell."""
        line = self._located.line_of(path)
        return f" (line {line})" if line is not None else ""

    def at(self, path: Steps) -> Any:
        """Return the part at *path*, None if there is none."""
        value = self.value
        for step in path:
            try:
                value = value[step]
            except (LookupError, TypeError):
                return None
        return value

    def _name(self, kind: str, path: Steps) -> str:
        """Return a slot or candidate by its id, by its number if it has none that can be shown."""
        id_, number = self._id(path), path[-1]
        return f"{kind} {quoted(id_)}" if id_ else f"{kind} {number + 1}" if isinstance(number, int) else kind

    def _id(self, path: Steps) -> str | None:
        id_ = self.at((*path, "id"))
        return id_ if isinstance(id_, str) and id_ and not secret_shaped(id_) else None
