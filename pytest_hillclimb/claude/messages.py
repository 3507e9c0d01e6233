"""One call of the Messages API as a run."""

from __future__ import annotations

from typing import Any

from anthropic import AsyncAnthropic

from pytest_hillclimb.claude.dialogue import Dialogue
from pytest_hillclimb.engine.app import Context
from pytest_hillclimb.model.run import Run


async def message(
    ctx: Context, client: AsyncAnthropic | None = None, *, messages: str | list[Any], **request: Any
) -> Run:
    """Ask Claude once and return the run: output, transcript, model as served, usage, stop_reason and counts.

    The answer is streamed, so that long ones arrive. The SDK makes no retries of its own: those of the trial are the
    only ones, and are counted. Timeouts end with the trial's deadline, and a cancelled call closes its connection.
    A refusal is an outcome like any other, with ``stop_reason`` ``refusal``; with ``max_tokens`` and
    ``model_context_window_exceeded`` the row's status is ``truncated``: a grader finds it in ``run.resolved_status``
    (``run.status`` is None unless ``run_case`` gives one). What was billed counts even if the run is never returned.

    :param ctx: what ``run_case`` or ``grade_case`` was given
    :param client: an async client of the SDK, also one of another platform; by default one that is configured by the
        environment (``ANTHROPIC_API_KEY``)
    :param messages: the messages, or a text for a single one of the user
    :param request: the other fields of ``messages.create``: ``model`` is ``ctx.model`` by default, ``max_tokens`` 4096;
        with ``betas`` the beta API is used; ``timeout`` (seconds) shortens the client's; ``stream=False`` asks for the
        answer in one piece
    :raises AnswerError: ``incomplete`` when a tool call or a paused turn was left open (see ``conversation``) or the
        answer was cut off or is no message, ``unknown_stop_reason`` for a reason that this version does not know
    :raises anthropic.APIError: as the SDK raises it, with ``model`` and ``usage`` if the answer had begun
    :raises HillclimbError: when no model is named
    """
    dialogue = Dialogue(ctx, client, request)
    answer = await dialogue.ask(as_messages(messages))
    return dialogue.run(answer, answer.text)


def as_messages(messages: str | list[Any]) -> list[Any]:
    """Return *messages* as the API takes them."""
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
