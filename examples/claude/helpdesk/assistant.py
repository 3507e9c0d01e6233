"""Answers a customer's message. The official SDK is used as in any app: nothing here knows of the eval."""

import json
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic
from anthropic.types import ToolUseBlock

from helpdesk.tools import DEFINITIONS, FUNCTIONS

PROMPTS = Path(__file__).parent / "prompts"
MAX_CALLS = 6


async def answer(message: str, *, client: AsyncAnthropic, model: str, prompt: str) -> str:
    """Return the reply to a customer's message.

    :param prompt: which instructions to work by; the name of a file in ``prompts/``
    """
    instructions = load_prompt(prompt)
    messages: list[Any] = [{"role": "user", "content": message}]
    for _ in range(MAX_CALLS):
        async with client.messages.stream(
            model=model,
            max_tokens=1024,
            system=instructions,
            tools=DEFINITIONS,
            messages=messages,
            cache_control={"type": "ephemeral"},  # each call repeats all that was said before it
        ) as stream:
            reply = await stream.get_final_message()
        if reply.stop_reason != "tool_use":
            return "".join(block.text for block in reply.content if block.type == "text")
        messages.append({"role": "assistant", "content": reply.content})
        messages.append({"role": "user", "content": [look_up(use) for use in reply.content if use.type == "tool_use"]})
    raise RuntimeError(f"no reply after {MAX_CALLS} calls of the model")


def look_up(use: ToolUseBlock) -> dict[str, Any]:
    """Carry out a call of a tool, and return its result for the model."""
    result = {"type": "tool_result", "tool_use_id": use.id}
    try:
        return {**result, "content": json.dumps(FUNCTIONS[use.name](**use.input))}
    except (KeyError, TypeError) as error:
        return {**result, "content": f"{type(error).__name__}: {error}", "is_error": True}


def load_prompt(name: str) -> str:
    """Return the instructions of a round, such as ``baseline`` or ``v1``."""
    path = PROMPTS / f"{name}.md"
    if not path.exists():
        raise FileNotFoundError(f"there is no {name}.md: copy an older round's file to helpdesk/prompts/{name}.md")
    return path.read_text(encoding="utf-8")
