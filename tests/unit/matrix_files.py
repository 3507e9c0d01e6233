"""Manifests for the tests of the matrix, and the golden values that its schedules are held to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb.errors import ManifestError
from pytest_hillclimb.model.candidate import Manifest
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.schedule.manifest import read_manifest

HERE = Path(__file__).parent
GOLDEN: dict[str, Any] = json.loads((HERE / "matrix_golden.json").read_text(encoding="utf-8"))
CASES = [Case(id=id_) for id_ in GOLDEN["cases"]]


def nightly() -> Manifest:
    """Return the manifest that the golden values belong to."""
    return read_manifest(HERE / "nightly_candidates.yaml", "nightly.yaml")


def manifest(*sizes: int, **rules: Any) -> Manifest:
    """Return a manifest whose slots ``s0``, ``s1``, ... have so many candidates ``s0-0``, ``s0-1``, ..."""
    slots = [
        {"id": f"s{i}", "candidates": [{"id": f"s{i}-{j}", "slot_id": f"s{i}", "model": "m"} for j in range(size)]}
        for i, size in enumerate(sizes)
    ]
    return Manifest.model_validate({"slots": slots, "schedule": rules, "source": "m.yaml"})


def cases(count: int) -> list[Case]:
    return [Case(id=f"c{i}") for i in range(count)]


def read(directory: Path, text: str | bytes, name: str = "m.yaml") -> Manifest:
    path = directory / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_manifest(path, f"evals/{name}")


def refusal(directory: Path, text: str | bytes, name: str = "m.yaml") -> ManifestError:
    """Return how a manifest is refused: in one line that names the file."""
    with pytest.raises(ManifestError) as caught:
        read(directory, text, name)
    message = caught.value.message
    assert message.startswith(f"evals/{name}")
    assert len(message.splitlines()) == 1
    assert message.isprintable()
    return caught.value
