"""What may be planted at a name in a flow directory, for tests that want it refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

SECRET = b"not for you"


def plant_symlink(place: Path, outside: Path) -> None:
    place.symlink_to(outside)


def plant_dangling(place: Path, outside: Path) -> None:
    place.symlink_to(outside.with_name("nowhere"))


def plant_hard_link(place: Path, outside: Path) -> None:
    place.hardlink_to(outside)


def plant_fifo(place: Path, outside: Path) -> None:
    os.mkfifo(place)


def plant_directory(place: Path, outside: Path) -> None:
    place.mkdir()


Plant = Callable[[Path, Path], None]
FILE_PLANTS = [plant_symlink, plant_dangling, plant_hard_link, plant_fifo, plant_directory]
DIRECTORY_PLANTS = [plant_symlink, plant_dangling, plant_hard_link, plant_fifo]
