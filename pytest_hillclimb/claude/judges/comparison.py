"""Pairwise judging: this round's answer against the frozen one, without the judge knowing which is which."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal

from anthropic import AsyncAnthropic
from pydantic import BaseModel, ConfigDict

from pytest_hillclimb.claude.dialogue import MAX_TOKENS
from pytest_hillclimb.claude.judges.asking import Judge, Reason
from pytest_hillclimb.claude.judges.fence import text_of
from pytest_hillclimb.claude.judges.prompts import PAIRWISE, pairwise_prompt
from pytest_hillclimb.engine.app import Context
from pytest_hillclimb.errors import HillclimbError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.grade import Grade
from pytest_hillclimb.model.jsonable import plain
from pytest_hillclimb.model.run import Run

NEUTRAL = 0.5


class Preference(BaseModel):
    """Which of the two answers is better."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason
    verdict: Literal["a", "b", "tie", "both_bad"]


async def pairwise(
    ctx: Context,
    case: Case,
    run: Run,
    ref: str | None,
    *,
    model: str,
    criteria: str | Sequence[str],
    both_orders: bool = False,
    name: str = "win",
    client: AsyncAnthropic | None = None,
    allow_self_judge: bool = False,
    max_tokens: int = MAX_TOKENS,
    **request: Any,
) -> Grade:
    """Have the answer compared with the baseline's: 1 for a win, 0.5 for a tie, 0 for a loss or if both are bad.

    Both are compared as references are stored, without unmistakable secrets. In the baseline, which has nothing to be
    compared with, and for an answer that is equal to the reference the grade is 0.5 without a request.

    :param ref: what ``grade_case`` was given
    :param criteria: what makes an answer better, and what makes it acceptable
    :param both_orders: ask twice, with either answer first, and call it a tie if the grades differ; by default the
        order is drawn from ``ctx.seed``
    :param name: the metric
    :param request: further fields of ``messages.create``; these, *model* and *client* are as for ``rubric``
    :raises JudgeError: when there is no verdict, with what was billed for both orders
    :raises HillclimbError: when a later round has no reference for the case
    :raises anthropic.APIError: as the SDK raises it
    """
    wanted = _criteria(criteria)
    request["max_tokens"] = max_tokens
    judge = Judge(ctx, run, model, allow_self=allow_self_judge, client=client, request=request)
    candidate, reference = _as_stored(ctx, run.output), _as_stored(ctx, ref)
    if ref is None or candidate == reference:
        return Grade(grade={name: NEUTRAL}, explanation={name: _not_compared(ctx, case, ref)})
    is_first = Random(f"{ctx.seed}/order").random() < 0.5
    orders = (is_first, not is_first) if both_orders else (is_first,)
    win, said = await _compared(judge, ctx.seed, case, candidate, reference, wanted, orders)
    return Grade(grade={name: win}, explanation={name: said}, **judge.billed)


async def _compared(
    judge: Judge,
    seed: int,
    case: Case,
    candidate: str,
    reference: str,
    criteria: Sequence[str],
    orders: Sequence[bool],
) -> tuple[float, str]:
    """Return the candidate's win and what the judge said.

    :param orders: for each request, whether the candidate is shown first
    """
    wins, said = [], []
    for is_first in orders:
        shown = (candidate, reference) if is_first else (reference, candidate)
        preference = await judge.verdict(PAIRWISE, pairwise_prompt(seed, case, *shown, criteria), Preference)
        wins.append(_win(preference.verdict, is_first))
        said.append(_explained(preference, is_first))
    if len(set(wins)) == 1:
        return wins[0], "\n".join(said)
    return NEUTRAL, "\n".join([*said, "tie: the verdicts of the two orders differ"])


def _as_stored(ctx: Context, output: Any) -> str:
    """Return an output without its unmistakable secrets: a reference has lost them, which would tell it apart."""
    strict = ctx.app.redactor.strict
    return strict.text(text_of(strict.data(plain(output, "output"))))


def _not_compared(ctx: Context, case: Case, ref: str | None) -> str:
    """Return why there is nothing to compare."""
    if ref is not None:
        return "tie: the answer is equal to the reference"
    if ctx.settings.is_baseline:
        return "neutral: the baseline is what later rounds are compared with"
    raise HillclimbError(
        f"pairwise: the baseline has no reference for case {case.id!r:.80}; run the case in the baseline first"
    )


def _win(verdict: str, candidate_is_a: bool) -> float:
    if verdict == "tie":
        return NEUTRAL
    return float(verdict == ("a" if candidate_is_a else "b"))


def _explained(preference: Preference, candidate_is_a: bool) -> str:
    a, b = ("candidate", "reference") if candidate_is_a else ("reference", "candidate")
    return f"{preference.verdict} (A is the {a}, B the {b}): {preference.reason}"


def _criteria(criteria: str | Sequence[str]) -> list[str]:
    listed = [criteria] if isinstance(criteria, str) else list(criteria)
    if not listed or not all(isinstance(each, str) and each.strip() for each in listed):
        raise HillclimbError("pairwise: criteria must be a text, or a list of texts, that is not empty")
    return listed
