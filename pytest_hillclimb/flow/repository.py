"""The git repository that an eval lies in."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_of(directory: Path) -> str | None:
    """Return the commit that the eval's repository is at, None outside of one."""
    try:
        asked = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=directory, capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip() or None if asked.returncode == 0 else None
