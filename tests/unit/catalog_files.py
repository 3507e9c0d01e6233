"""Catalog files for the tests of their readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.catalog import CatalogEntry, read_catalog
from pytest_hillclimb.errors import CatalogError
from pytest_hillclimb.model.case import Case


def read(directory: Path, name: str, text: str | bytes) -> list[CatalogEntry]:
    path = directory / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_catalog(path, f"evals/{name}")


def cases(directory: Path, name: str, text: str | bytes) -> list[Case]:
    return [entry.case for entry in read(directory, name, text)]


def fields(case: Case) -> dict[str, Any]:
    return case.model_dump(exclude_unset=True)


def refusal(directory: Path, name: str, text: str | bytes) -> str:
    with pytest.raises(CatalogError) as caught:
        read(directory, name, text)
    message = caught.value.message
    assert message.startswith(f"evals/{name}")
    assert len(message.splitlines()) == 1
    return message
