"""Judges that talk to the scripted server: what they are asked, and verdicts as the API would give them."""

from __future__ import annotations

import json
import re
from typing import Any

from messages_server import Play, Request, answer

from pytest_hillclimb.claude.judges import standalone_context
from pytest_hillclimb.engine.app import Context
from pytest_hillclimb.model.case import Case

JUDGE = "claude-opus-4-1"
USAGE = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 7}
CASE = Case(id="refund", prompt="May I return it?", expected="Within 30 days.")


def context(case: Case = CASE, **options: Any) -> Context:
    """Return the context of a later round of a model that is not the judge."""
    return standalone_context(case, **{"model": "claude-haiku-4-5", **options})


def verdict(content: Any, **fields: Any) -> Play:
    """Return the play of a judge that says *content*: a text, or what its schema asks for."""
    text = content if isinstance(content, str) else json.dumps(content)
    return answer(text, **{"model": JUDGE, "usage": dict(USAGE), **fields})


def claims(*holds: bool, **fields: Any) -> Play:
    """Return the verdict on a rubric."""
    said = {f"claim_{n}": {"reason": f"reason {n}", "holds": each} for n, each in enumerate(holds, 1)}
    return verdict(said, **fields)


def preference(which: str, reason: str = "it is shorter", **fields: Any) -> Play:
    """Return the verdict of a comparison."""
    return verdict({"reason": reason, "verdict": which}, **fields)


def fenced(request: Request, name: str) -> str:
    """Return the text between the marks of *name*, which must be there once."""
    code = code_of(request)
    assert request.prompt.count(f"<{name}-{code}>") == request.prompt.count(f"</{name}-{code}>") == 1
    return request.prompt.partition(f"<{name}-{code}>\n")[2].partition(f"\n</{name}-{code}>")[0]


def code_of(request: Request) -> str:
    """Return the code of a request's marks."""
    found = re.match(r"The code of the marks is ([0-9a-f]+)\.", request.prompt)
    assert found is not None
    return found[1]


def shape(request: Request) -> dict[str, Any]:
    """Return the schema that the answer must keep to."""
    form: dict[str, Any] = request.body["output_config"]["format"]
    assert form["type"] == "json_schema"
    return form["schema"]
