"""What the plugin costs a session without evals: one plain item with it, and with ``-p no:hillclimb``.

All plugins of the environment are loaded here, as in a user's session. Modules are compared when the process ends.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import difference, row
from benchmarks.sessions import Plain, Project, interleave

_CONFTEST = """
import atexit
import pathlib
import sys

atexit.register(lambda: pathlib.Path("modules.txt").write_text("\\n".join(sys.modules)))
"""


def measure(directory: Path, *, quick: bool) -> None:
    project = Project(directory / "unit tests", plain=1)
    active = Plain("with the plugin", project, all_plugins=True)
    without = Plain("-p no:hillclimb", project, ("-p", "no:hillclimb"), all_plugins=True)
    samples = interleave([active, without], rounds=20 if quick else 50)
    seconds = {label: [sample.seconds for sample in found] for label, found in samples.items()}
    for label, values in seconds.items():
        row(label, values)
    difference("the plugin's share", seconds[active.label], seconds[without.label], 5)
    (project.root / "plain" / "conftest.py").write_text(_CONFTEST)
    added = sorted(_modules(active) - _modules(without))
    print(f"  modules imported in addition: {', '.join(added)}")


def _modules(session: Plain) -> set[str]:
    session.run()
    return set((session.project.root / "modules.txt").read_text().splitlines())
