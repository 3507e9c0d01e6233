"""Runs this example without a key and without a network: a stand-in on this machine plays Claude.

    python examples/claude/offline.py                          # the baseline
    python examples/claude/offline.py --hillclimb-variant v1   # round 1

Arguments are passed on to pytest. Results lie apart from those of real runs, in ``.claude/hillclimb/offline``.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SERVER = HERE.parents[1] / "tests/claude"

sys.path.append(str(SERVER))
try:
    from messages_server import MessagesServer

    from stand_in import StandIn
except ImportError as error:
    sys.exit(f'offline.py: {error}; from a clone of the repository, run: pip install -e ".[test]"')


def main() -> int:
    """Run pytest with the stand-in as its API, and return its exit status."""
    flow = HERE / ".claude/hillclimb/offline"
    command = [sys.executable, "-m", "pytest", str(HERE), "--hillclimb-approve-harness", f"--hillclimb-flow={flow}"]
    with MessagesServer(StandIn().play) as server:
        signal.signal(signal.SIGINT, lambda *_: None)  # pytest gets a Ctrl-C too, and ends in good order
        return subprocess.run([*command, *sys.argv[1:]], env=environment(server.url), check=False).returncode


def environment(url: str) -> dict[str, str]:
    """Return the environment of that one process: it knows no other API, no key but a word that opens nothing."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC_") and not k.upper().endswith("_PROXY")}
    return {**own, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "offline"}


if __name__ == "__main__":
    sys.exit(main())
