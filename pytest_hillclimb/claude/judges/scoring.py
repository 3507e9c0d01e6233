"""Rubrics: concrete claims about an answer, each judged true or false with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from anthropic import AsyncAnthropic
from pydantic import BaseModel, ConfigDict, create_model

from pytest_hillclimb.claude.dialogue import MAX_TOKENS
from pytest_hillclimb.claude.judges.asking import Judge, Reason
from pytest_hillclimb.claude.judges.fence import text_of
from pytest_hillclimb.claude.judges.prompts import RUBRIC, rubric_prompt
from pytest_hillclimb.engine.app import Context
from pytest_hillclimb.errors import HillclimbError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.grade import Grade
from pytest_hillclimb.model.run import Run


class ClaimVerdict(BaseModel):
    """The verdict on one claim."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason
    holds: bool


async def rubric(
    ctx: Context,
    case: Case,
    run: Run,
    claims: Sequence[str] | Mapping[str, str],
    *,
    model: str,
    score: Literal["share", "all"] = "share",
    name: str = "rubric",
    per_claim: bool = False,
    context: str | None = None,
    client: AsyncAnthropic | None = None,
    allow_self_judge: bool = False,
    max_tokens: int = MAX_TOKENS,
    **request: Any,
) -> Grade:
    """Have each claim about the answer judged true or false, in one request.

    :param claims: texts that are true or false of an answer, such as "names the deadline of 30 days", or ``{id:
        claim}``; at least one should be false of an empty answer
    :param model: the judge
    :param score: ``share`` of the claims that hold, or ``all``: 1 if all do, else 0, and the row passed or not
    :param name: the metric; *per_claim* adds a metric ``<name>.<id>`` for each claim (ids count from 1)
    :param context: what the judge should know besides the task, such as the expected answer or a policy
    :param client: as for ``claude.message``
    :param request: further fields of ``messages.create``, such as ``thinking`` or ``timeout``
    :raises JudgeError: when there is no verdict, with what was billed
    :raises anthropic.APIError: as the SDK raises it
    """
    texts = _texts(claims)
    if score not in ("share", "all"):
        raise HillclimbError(f"rubric: score must be 'share' or 'all', got {score!r:.80}")
    request["max_tokens"] = max_tokens
    judge = Judge(ctx, run, model, allow_self=allow_self_judge, client=client, request=request)
    prompt = rubric_prompt(ctx.seed, case, text_of(run.output), list(texts.values()), context)
    answered = await judge.verdict(RUBRIC, prompt, _shape(len(texts)))
    verdicts = {each: getattr(answered, f"claim_{number}") for number, each in enumerate(texts, 1)}
    return _grade(judge, texts, verdicts, score, name, per_claim)


def _grade(
    judge: Judge,
    claims: Mapping[str, str],
    verdicts: Mapping[str, ClaimVerdict],
    score: str,
    name: str,
    per_claim: bool,
) -> Grade:
    held = sum(verdict.holds for verdict in verdicts.values())
    whole = held == len(claims)
    metrics: dict[str, float] = {name: float(whole) if score == "all" else held / len(claims)}
    false_first = sorted(claims, key=lambda i: verdicts[i].holds)  # what a summary of one line has room for
    lines = [f"{'true ' if verdicts[i].holds else 'false'} {i}: {claims[i]}: {verdicts[i].reason}" for i in false_first]
    explanation = {name: "\n".join([f"{held} of {len(claims)} claims hold:", *lines])}
    if per_claim:
        metrics |= {f"{name}.{i}": float(verdict.holds) for i, verdict in verdicts.items()}
        explanation |= {f"{name}.{i}": verdict.reason for i, verdict in verdicts.items()}
    verdict = {"passed": whole} if score == "all" else {}
    return Grade(grade=metrics, explanation=explanation, **verdict, **judge.billed)


def _texts(claims: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return the claims by id."""
    if isinstance(claims, str):
        raise HillclimbError("rubric: claims must be a list of texts or {id: text}, got one text")
    listed = claims if isinstance(claims, Mapping) else {str(n): text for n, text in enumerate(claims, 1)}
    if not listed:
        raise HillclimbError("rubric: there is no claim to judge")
    for each, text in listed.items():
        if not isinstance(text, str) or not text.strip():
            raise HillclimbError(f"rubric: claim {each!r:.80} must be a text that is not empty, got {text!r:.80}")
    return {str(each): text for each, text in listed.items()}


@lru_cache(maxsize=64)
def _shape(count: int) -> type[BaseModel]:
    """Return the model of a verdict on so many claims. Each is a field, so the schema itself asks for each once."""
    fields: dict[str, Any] = {f"claim_{number}": (ClaimVerdict, ...) for number in range(1, count + 1)}
    return create_model("Verdicts", __config__=ConfigDict(extra="forbid"), **fields)
