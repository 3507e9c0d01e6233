"""A conversation: calls of the Messages API and of tools, until the model is done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from anthropic import AsyncAnthropic

from pytest_hillclimb.claude.answer import Answer
from pytest_hillclimb.claude.dialogue import Dialogue
from pytest_hillclimb.claude.messages import as_messages
from pytest_hillclimb.claude.tools import Tools
from pytest_hillclimb.engine.app import Context
from pytest_hillclimb.model.run import Run

MAX_TURNS = 50


async def conversation(
    ctx: Context,
    client: AsyncAnthropic | None = None,
    *,
    messages: str | list[Any],
    tools: Iterable[Any] = (),
    max_turns: int = MAX_TURNS,
    **request: Any,
) -> Run:
    """Let Claude work with tools until its turn is over, and return all of it as one run.

    The run has the turns of all calls, each once, the sum of their usage, and the text of the final answer as output.
    A turn that the API has paused (``pause_turn``) goes on. An exception of a tool is told to the model as a result
    with ``is_error``, except those of the SDK and of this plugin, and ``InfrastructureError``, which fail the attempt.
    A tool returns text, one block of content (text, image, document) or several, or data, which is sent as JSON.
    Sync tools run on a thread, one tool at a time, in the order in which the model asked.

    :param ctx: what ``run_case`` was given
    :param client: as for ``message``
    :param messages: the messages, or a text for a single one of the user
    :param tools: functions, sync or async, whose signature and docstring tell the model what they do; pairs of a
        definition (or just the JSON schema of the arguments) and a function that takes the arguments by name; tools
        made with the SDK's ``beta_tool``; definitions of the API's own tools, such as web search
    :param max_turns: how many calls of the model are made at most
    :param request: as for ``message``
    :raises AnswerError: ``incomplete`` also when the model still wants to go on after ``max_turns`` calls; with the
        usage of all calls
    :raises ServedAnother: when another model answers than before (``serving_substitution``)
    :raises anthropic.APIError: as the SDK raises it, with ``model`` and ``usage`` of what was billed until then
    """
    kit = Tools(tools)
    if kit.definitions:
        request["tools"] = kit.definitions
    return await _talk(Dialogue(ctx, client, request), kit, as_messages(messages), max_turns)


async def _talk(dialogue: Dialogue, kit: Tools, said: list[Any], max_turns: int) -> Run:
    written = ""
    for _ in range(max_turns):
        answer = await dialogue.ask(said)
        written += answer.text
        if not _goes_on(answer):
            return dialogue.run(answer, written)
        said.append({"role": "assistant", "content": _echo(answer)})
        if answer.stop_reason == "tool_use":
            said.append({"role": "user", "content": [await kit.result(use) for use in answer.tool_uses]})
            written = ""
    raise dialogue.failure("incomplete", f"the model was not done after {max_turns} turns")


def _goes_on(answer: Answer) -> bool:
    if answer.stop_reason == "tool_use":
        return bool(answer.tool_uses)
    return answer.stop_reason == "pause_turn" and bool(answer.content)


def _echo(answer: Answer) -> list[dict[str, Any]]:
    """Return the blocks of an answer as a request may repeat them: the API takes no empty text and no broken input."""
    blocks = [block for block in answer.content if block.get("type") != "text" or block.get("text")]
    return [{**b, "input": {}} if "input" in b and not isinstance(b["input"], dict) else b for b in blocks]
