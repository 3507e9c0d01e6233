"""Every row of a variant, for whoever reads a variant as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pytest_hillclimb.flow.journal import Scan
from pytest_hillclimb.flow.layout import ERRORS, RESULTS
from pytest_hillclimb.flow.safe import SafeDir, refused


def variant_rows(directory: SafeDir) -> Iterator[dict[str, Any]]:
    """Yield the rows of the variant in *directory*: scored executions, then failed ones.

    Lines that hold no row are skipped, and so is a line that is there already: it was delivered twice, not paid twice.

    :raises RefusedError: if a file cannot be read
    """
    for name in (RESULTS, ERRORS):
        with refused(f"cannot read {directory.path_of(name)}"):
            file = directory.reader(name)
            if file is not None:
                with file:
                    for line in Scan(_each_once(file)):
                        yield line.row


def _each_once(lines: Iterable[bytes]) -> Iterator[bytes]:
    seen: set[int] = set()
    for line in lines:
        if (known := hash(line)) not in seen:
            seen.add(known)
            yield line
