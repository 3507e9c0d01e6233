"""Frozen references: the output of the baseline that later variants are judged against, ``baseline/ref/<id>[.ext]``.

Pattern: a reference appears whole or not at all (written beside, synced, renamed), because half of one would be judged
against for good. It is never written twice; whoever wants another removes the file.

Accepted trade-offs: a file put at the name between the look and the rename is lost.

Scope: this plugin writes the name without an extension; people may put ``.html``, ``.txt`` or ``.json`` files there.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from pytest_hillclimb.flow.safe import SafeDir
from pytest_hillclimb.model.jsonable import compact, encode

_ONE_WRITE = 4096  # bytes that a kill cannot split: they go to the file in one piece, or not at all

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


class References:
    """The references of a flow, as the baseline freezes them.

    What is there is looked at once, so that freezing costs no look for each name. A name that comes into being later
    is never written to, nor followed if it is a link.

    :param directory: ``baseline/ref``
    :param scored: the path-safe ids that have rows: an empty file of theirs is a reference, any other may be what a
        killed run has left
    """

    def __init__(self, directory: SafeDir, scored: Collection[str] = ()) -> None:
        self._directory = directory
        self._scored = scored
        self._there = set(os.listdir(directory.fd))
        self._frozen: set[str] = set()

    def freeze(self, safe_id: str, output: Any) -> bool:
        """Keep an output as the reference of a case, unless there is anything under one of its names.

        :param safe_id: the path-safe id of the case
        :param output: text, kept verbatim, or plain JSON data, kept as compact JSON
        :return: whether it was written
        :raises OSError: if it could not be written
        :raises UnsafePathError: if what is there is a link or no regular file, which no later round could read
        """
        if safe_id in self._frozen:
            return False
        self._frozen.add(safe_id)
        for name in (safe_id + suffix for suffix in REF_SUFFIXES):
            status = self._directory.check(name) if name in self._there else None
            if status is not None and (status.st_size or safe_id in self._scored):
                return False
        self._write(safe_id, encode(output if isinstance(output, str) else compact(output)))
        return True

    def _write(self, name: str, data: bytes) -> None:
        if name in self._there or len(data) > _ONE_WRITE:
            self._directory.replace(name, data, sync=False)
            return
        try:
            self._directory.create(name, data)
        except FileExistsError:
            self._directory.check(name)
