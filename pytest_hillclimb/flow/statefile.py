"""``_state.json``, the state of the improvement loop: read here, and written only to record an approval.

Pattern: an approval reads the file again, changes ``harness_sha`` alone and replaces the file at once, so that keys
keep their order and a crash leaves the old file or the new one.

Accepted trade-offs: an edit made between that reading and the replacing is lost; the layout becomes that of
``json.dumps`` with an indent of two.

Scope: the file as a JSON object. What its keys mean is checked where they are used.
"""

from __future__ import annotations

from typing import Any

from pytest_hillclimb.errors import StateError
from pytest_hillclimb.flow import document
from pytest_hillclimb.flow.layout import STATE
from pytest_hillclimb.flow.safe import SafeDir, refused


def read_state(root: SafeDir | None) -> dict[str, Any]:
    """Return the loop state; an absent file, or one that holds ``null``, is an empty state.

    :param root: the flow directory, None if it does not exist
    :raises StateError: if the file is no JSON object, or cannot be read
    :raises UnsafePathError: if it is a link or no regular file
    """
    if root is None:
        return {}
    shown = root.path_of(STATE)
    with refused(f"cannot read {shown}", StateError):
        data = root.read(STATE)
    if data is None:
        return {}
    try:
        state = document.parse(data)
    except ValueError as error:
        raise StateError(f"{shown} {error}", path=shown) from None
    if state is None:
        return {}
    if not isinstance(state, dict):
        raise StateError(f"{shown} must hold a JSON object, not a {type(state).__name__}", path=shown)
    return state


def record_approval(root: SafeDir, sha: str) -> None:
    """Record *sha* as the approved harness; nothing is written when it is recorded already.

    :raises StateError: if the file cannot be read as an object, or cannot be written
    """
    state = read_state(root)
    if state.get("harness_sha") == sha:
        return
    state["harness_sha"] = sha
    shown = root.path_of(STATE)
    try:
        data = document.render(state)
    except ValueError:
        raise StateError(f"{shown} holds a number too large for JSON; correct it first", path=shown) from None
    with refused(f"cannot record the approval in {shown}", StateError):
        root.replace(STATE, data)
