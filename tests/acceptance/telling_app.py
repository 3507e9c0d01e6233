"""An app that tells secrets wherever it can, and a look at all that a session leaves for them.

Secrets are put together from parts, so that no scanner takes this file, or the projects made with it, for a leak.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

ENV_NAME, ENV_VALUE = "MY_SERVICE_PASSWORD", "hunter2-and-more"
PATTERN = "zq-[0-9]+"
"""A pattern of the user's own, for the ini."""

TAILS = ("api03-abcdefghijkl", "abcdef0123456789", "123456", ENV_VALUE)
"""What must not be left of: a key, a bearer token, a secret of the user's pattern, a credential of the environment."""

SECRETS = f"{'sk-' + 'ant-' + TAILS[0]} {'Bear' + 'er ' + TAILS[1]} {'zq-' + TAILS[2]} {ENV_VALUE}"

APP = f"""
import logging
import os
import sys
import threading
import warnings

import pytest

from pytest_hillclimb import Grade, InfrastructureError, Run

KEY = "sk-" + "ant-{TAILS[0]}"
TOLD = f"{{KEY}} {{'Bear' + 'er '}}{TAILS[1]} {{'zq-'}}{TAILS[2]} {{os.environ['{ENV_NAME}']}}"


@pytest.fixture(autouse=True)
def around(request):
    print("the fixture:", TOLD)
    logging.getLogger("app").warning("fixture log: %s", TOLD)
    if "fixture-fails" in request.node.nodeid:
        raise RuntimeError(f"the fixture: {{TOLD}}")
    if "fixture-skips" in request.node.nodeid:
        pytest.skip(f"the fixture: {{TOLD}}")


def say():
    print("stdout:", TOLD)
    print("stderr:", TOLD, file=sys.stderr)
    logging.getLogger("app").warning("log: %s", TOLD)
    try:
        raise ValueError(f"logged: {{TOLD}}")
    except ValueError:
        logging.getLogger("app").exception("traceback:")
    for told in (print, logging.getLogger("app").warning):
        thread = threading.Thread(target=told, args=(f"thread: {{TOLD}}",))
        thread.start()
        thread.join()
    warnings.warn(f"warning: {{TOLD}}")


def pytest_hillclimb_run_case(case, ctx):
    say()
    match case.do:
        case "infra":
            raise InfrastructureError("lost", True, f"infrastructure: {{TOLD}}")
        case "raises":
            raise RuntimeError("long " * 196 + f"error: {{TOLD}}")
        case "skips":
            pytest.skip(f"skipped: {{TOLD}}")
        case "exits":
            pytest.exit(f"the end: {{TOLD}}")
    page = ctx.attach("page.txt", f"page: {{TOLD}}", alt=f"alt: {{TOLD}}")
    asked = {{"role": "user", "content": [f"asked: {{TOLD}}"], "attachments": [page]}}
    return Run(output={{"said": [TOLD]}}, transcript=[asked, {{"role": "assistant", "tool": TOLD}}], model=ctx.model)


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    if case.do == "grader-raises":
        raise RuntimeError(f"grader: {{TOLD}}")
    return Grade(grade=case.do != "misses", explanation=f"because of {{TOLD}}")


def pytest_hillclimb_perf(case, run):
    return {{"note": f"perf: {{TOLD}}"}}
"""

ENDS = ("passes", "misses", "infra", "raises", "skips", "grader-raises", "fixture-fails", "fixture-skips")


def cases(*ends: str) -> list[dict[str, Any]]:
    """Return cases that end in these ways, with secrets in what their author wrote."""
    told = {"prompt": f"prompt: {SECRETS}", "expected": {"is": SECRETS}, "meta": {"note": SECRETS}, "tags": [SECRETS]}
    return [{"id": end, "do": end, **told} for end in ends or ENDS]


def leaks(texts: Iterable[str], *directories: Path) -> list[str]:
    """Return where a secret was left: lines of *texts*, and names of files below *directories*."""
    found = [line for text in texts for line in text.splitlines() if any(tail in line for tail in TAILS)]
    for directory in directories:
        for path in sorted(each for each in directory.rglob("*") if each.is_file()):
            content = path.read_bytes().decode("utf-8", "replace")
            found += [f"{path.name}: {tail}" for tail in TAILS if tail in content or tail in str(path)]
    return found
