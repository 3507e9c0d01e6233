"""Talking to Claude with the official ``anthropic`` SDK, so that rows are complete and failures are named.

One call, or a loop with tools, gives the ``Run`` that ``run_case`` returns::

    from pytest_hillclimb import claude

    async def pytest_hillclimb_run_case(case, ctx):
        return await claude.message(ctx, messages=case.prompt, system="Answer in one word.", max_tokens=200)

    async def pytest_hillclimb_run_case(case, ctx):
        return await claude.conversation(ctx, messages=case.prompt, tools=[find_order, refund], max_tokens=2000)

An app that makes its calls itself is evaluated as it is: give it a client that records, sync or async, and return what
its entry point returns::

    client = claude.record(anthropic.Anthropic())

    def pytest_hillclimb_run_case(case, ctx):
        return {"output": my_app.answer(case.prompt, client=client, model=ctx.model)}

The SDK is loaded on first use of a name, because pytest imports packages of plugins in every session.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_hillclimb.claude import judges
    from pytest_hillclimb.claude.errors import AnswerError
    from pytest_hillclimb.claude.messages import message
    from pytest_hillclimb.claude.recorder import record
    from pytest_hillclimb.claude.tool_loop import conversation

_HOMES = {
    "AnswerError": "errors",
    "conversation": "tool_loop",
    "message": "messages",
    "record": "recorder",
}

__all__ = ["AnswerError", "conversation", "judges", "message", "record"]


def __getattr__(name: str) -> Any:
    if name == "judges":
        return import_module(f"{__name__}.judges")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
