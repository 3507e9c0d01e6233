"""The exception tree. Errors carry fields, build their message in one place, and pickle.

::

    HillclimbError
    |-- RefusedError            nothing was run: pytest exits with 4 and prints one line
    |   |-- OptionError         an option or ini value
    |   |-- CatalogError        a catalog file or the cases of a hook
    |   |-- ManifestError       a candidate manifest
    |   |-- StateError          _state.json
    |   |-- UnsafePathError     a path of the flow directory that must not be used
    |   |-- HarnessError        the harness is not the one that was approved
    |   |-- LockedError         another session writes the variant
    |   `-- HookError           a hook of a conftest that is missing or misspelt
    |-- JudgeError              a judge's verdict cannot be read (pytest_hillclimb.claude.judges)
    |-- BadValueError           a value that a row, a trace or a reference cannot hold
    |-- AttachmentError         an artifact that cannot be kept
    `-- WriteError              the disk did not take what was paid for
    InfrastructureError         raised by a user's own harness: never scored
"""

from __future__ import annotations

from typing import Any


class HillclimbError(Exception):
    """Base of the plugin's own errors; keyword fields become attributes."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self._fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self._fields))


def _rebuild(kind: type[HillclimbError], message: str, fields: dict[str, Any]) -> HillclimbError:
    return kind(message, **fields)


class RefusedError(HillclimbError):
    """The run is refused before anything was executed."""


class OptionError(RefusedError):
    """An option or an ini value cannot be used."""


class CatalogError(RefusedError):
    """A catalog cannot be used; the message names file, position and field."""


class ManifestError(RefusedError):
    """A candidate manifest cannot be used; the message names file, slot, candidate and field."""


class StateError(RefusedError):
    """``_state.json`` cannot be used."""


class UnsafePathError(RefusedError):
    """A path of the flow directory is a link, is no regular file, or leaves the flow."""


class HarnessError(RefusedError):
    """The harness differs from the approved one, or none was approved."""


class LockedError(RefusedError):
    """Another session is writing the same variant."""


class HookError(RefusedError):
    """A hook that a conftest must have is missing, or one has an unknown name."""


class BadValueError(HillclimbError):
    """A value cannot be stored as JSON.

    Fields: ``path`` (where the value sits, such as ``output.items[3].score``) and ``reason``.
    """

    path: str
    reason: str

    @classmethod
    def at(cls, path: str, reason: str) -> BadValueError:
        """Return the error for the value at *path*."""
        return cls(f"{path}: {reason}", path=path, reason=reason)


class AttachmentError(HillclimbError):
    """An artifact given to ``ctx.attach`` cannot be kept."""


class WriteError(HillclimbError):
    """A paid row could not be written to the flow directory."""


class InfrastructureError(Exception):
    """Raise this from ``run_case`` when the harness, not the candidate, failed.

    :param code: short machine-readable name of what broke, such as ``sandbox_lost``
    :param retryable: whether one more try makes sense (the engine makes at most one)
    :param message: text for people
    """

    def __init__(self, code: str, retryable: bool, message: str) -> None:
        super().__init__(code, retryable, message)
        self.code = code
        self.retryable = retryable
        self.message = message

    def __str__(self) -> str:
        return self.message
