"""Frozen references: the output of the baseline that later variants are judged against, ``baseline/ref/<id>[.ext]``.

Pattern: a reference appears whole or not at all (written beside, synced, renamed), because half of one would be judged
against for good. It is never written twice; whoever wants another removes the file.

Accepted trade-offs: a file put at the name between the look and the rename is lost.

Scope: this plugin writes the name without an extension; people may put ``.html``, ``.txt`` or ``.json`` files there.
"""

from __future__ import annotations

from typing import Any

from pytest_hillclimb.flow.safe import SafeDir
from pytest_hillclimb.model.jsonable import compact, encode

REF_SUFFIXES = ("", ".html", ".txt", ".json")
"""The names of a reference, in the order in which they are looked for."""


def read_reference(ref_dir: SafeDir | None, safe_id: str) -> str | None:
    """Return the reference of a case, or None when it has none; bytes that are no UTF-8 become U+FFFD.

    :param ref_dir: ``baseline/ref``, None if it does not exist
    :param safe_id: the path-safe id of the case
    :raises UnsafePathError: if the reference is a link or no regular file
    """
    if ref_dir is None:
        return None
    for suffix in REF_SUFFIXES:
        data = ref_dir.read(safe_id + suffix)
        if data is not None:
            return data.decode(errors="replace")
    return None


def freeze_reference(ref_dir: SafeDir, safe_id: str, output: Any) -> bool:
    """Keep an output as the reference of a case, unless there is anything under one of its names.

    :param ref_dir: ``baseline/ref``
    :param safe_id: the path-safe id of the case
    :param output: text, kept verbatim, or plain JSON data, kept as compact JSON
    :return: whether it was written
    :raises OSError: if it could not be written; nothing is left of it then
    :raises UnsafePathError: if what is there is a link or no regular file, which no later round could read
    """
    if any(ref_dir.check(safe_id + suffix) is not None for suffix in REF_SUFFIXES):
        return False
    ref_dir.replace(safe_id, encode(output if isinstance(output, str) else compact(output)))
    return True
