"""Asking a model for a verdict: one request with a schema, whose answer is read strictly or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import anthropic
from pydantic import AfterValidator, BaseModel, ValidationError

from pytest_hillclimb.claude.answer import Answer
from pytest_hillclimb.claude.dialogue import Dialogue
from pytest_hillclimb.claude.judges.errors import JudgeError
from pytest_hillclimb.engine.app import Context
from pytest_hillclimb.engine.recording import CURRENT_RECORDING, Recording
from pytest_hillclimb.engine.served import is_served
from pytest_hillclimb.errors import HillclimbError
from pytest_hillclimb.model.run import Run

V = TypeVar("V", bound=BaseModel)

_EXCERPT_CHARS = 300
_READABLE = ("end_turn", "stop_sequence")
_CUT_OFF = ("max_tokens", "model_context_window_exceeded")
_OURS = ("messages", "output_format", "system")
_ROUTE = re.compile(r"^.*/|^.*?(?=claude-)|^[a-z0-9_]+:(?=[a-z]\w*-)")
_OPTIONS = re.compile(
    r"\[[^\]]*\]$"  # [1m]
    r"|:(?:beta|free|thinking|extended|nitro|floor|online|exacto)$"  # OpenRouter's
    r"|-v[0-9]+(?:$|:[0-9]+(?::[0-9]+k)?$|(?=[-@][0-9]{8}$))"  # versions at clouds
    r"|[-@:](?:latest|default)$|-0$"
)
_DOT = re.compile(r"(?<=[0-9])\.(?=[0-9])|@")


def _told(reason: str) -> str:
    if not any(character.isalnum() for character in reason):
        raise ValueError("no reason is given")
    return reason


Reason = Annotated[str, AfterValidator(_told)]
"""A reason in words: a verdict without one cannot be checked."""


class Judge:
    """A model that judges one attempt.

    :param ctx: what ``grade_case`` was given
    :param run: the run that is judged
    :param model: the judge
    :param request: further fields of ``messages.create``
    :raises JudgeError: when the judge is the model under test, unless *allow_self*
    :raises HillclimbError: when no judge is named, or *request* has what is not the caller's to give
    """

    def __init__(
        self, ctx: Context, run: Run, model: str, *, allow_self: bool, client: Any, request: Mapping[str, Any]
    ) -> None:
        if taken := [name for name in _OURS if name in request]:
            raise HillclimbError(f"judges: {', '.join(taken)} cannot be given; the judge's request has its own")
        if not isinstance(model, str) or not model:
            raise HillclimbError("judges: no judge is named; give the name of a model as model=")
        self._ctx = ctx
        self._model = model
        self._client = client
        self._request = {**request, "model": model}
        self._tested = () if allow_self else _models(ctx, run)
        self._dialogue: Dialogue | None = None
        self._answers: list[Answer] = []
        self._refuse_self(model)

    @property
    def billed(self) -> dict[str, Any]:
        """``judge_model`` and ``judge_usage`` of the verdicts so far, as a grade has them."""
        return billed_together((answer.model, answer.usage) for answer in self._answers)

    async def verdict(self, system: str, prompt: str, shape: type[V]) -> V:
        """Return the verdict in the given shape.

        :raises JudgeError: when it cannot be read
        :raises anthropic.APIError: as the SDK raises it
        """
        if self._dialogue is None:
            form = {"type": "json_schema", "schema": anthropic.transform_schema(shape)}
            output = {**self._request.get("output_config", {}), "format": form}
            request = {**self._request, "system": system, "output_config": output}
            self._dialogue = Dialogue(self._ctx, self._client, request)
        answer = await self._dialogue.ask([{"role": "user", "content": prompt}])
        self._answers.append(answer)
        self._check_served(answer)
        return self._read(answer, shape)

    def _refuse_self(self, judge: str) -> None:
        for tested in self._tested:
            if is_same(judge, tested):
                text = f"the judge {judge} is the model under test ({tested}); take another one as model="
                raise self._error(f"{text}, or say allow_self_judge=True")

    def _check_served(self, answer: Answer) -> None:
        served = answer.model
        if served is None:
            return
        if not is_served(_bare(self._model), _bare(served)):
            text = f"{self._model} was asked to judge, and {served} did"
            raise self._error(text, answer, failure_class="serving_substitution")

    def _read(self, answer: Answer, shape: type[V]) -> V:
        reason = answer.stop_reason
        if reason == "refusal":
            raise self._error("the judge refuses to judge (refusal)", answer)
        if reason in _CUT_OFF:
            raise self._error(f"the verdict was cut off ({reason}); give a higher max_tokens", answer)
        if reason not in _READABLE:
            why = f": {answer.flaw.text}" if answer.flaw is not None else ""
            raise self._error(f"the judge did not come to its end (stop_reason {reason}){why}", answer)
        if not answer.text.strip():
            raise self._error("the judge answered nothing", answer)
        try:
            data = json.loads(answer.text, object_pairs_hook=_each_once)
            return shape.model_validate(data, strict=True)
        except ValidationError as error:
            wrong = "; ".join(_worded(each) for each in error.errors(include_url=False, include_input=False)[:3])
        except (ValueError, RecursionError) as error:
            wrong = f"it is no JSON ({error})" if isinstance(error, json.JSONDecodeError) else str(error)
        raise self._error(f"the verdict cannot be read: {wrong}", answer)

    def _error(self, text: str, answer: Answer | None = None, *, failure_class: str = "judge_error") -> JudgeError:
        excerpt = answer.text[:_EXCERPT_CHARS] if answer is not None else ""
        said = f"; it said {json.dumps(excerpt, ensure_ascii=False)}" if excerpt else ""
        attempt = CURRENT_RECORDING.get()
        if attempt is None:
            billed = self.billed
        else:  # the grader may have asked other judges before, and an errors row has but this one account
            billed = {f"judge_{name}": value for name, value in attempt.billed().items()}
        served = answer.model if answer is not None else None
        return JudgeError(
            f"{text}{said}",
            failure_class=failure_class,
            judge_model=served or billed.get("judge_model"),
            judge_usage=billed.get("judge_usage"),
            excerpt=excerpt,
        )


def is_same(one: str, other: str) -> bool:
    """Return whether two names may be of one model: equal, or one an alias of the other, however they are routed."""
    one, other = _bare(one), _bare(other)
    return is_served(one, other) or is_served(other, one)


def billed_together(billed: Iterable[tuple[str | None, Mapping[str, Any] | None]]) -> dict[str, Any]:
    """Return ``judge_model`` and the sum of ``judge_usage`` of several (model, usage), as far as they are known."""
    recording = Recording()
    for model, usage in billed:
        parts = usage.get("by_model") if usage is not None else None
        for each, used in parts.items() if isinstance(parts, Mapping) else [(model, usage)]:
            if each is not None or used is not None:
                recording.add(model=each, usage=used)
    return {f"judge_{name}": value for name, value in recording.billed().items()}


def _models(ctx: Context, run: Run) -> list[str]:
    """Return the model under test, as requested, and every one that has served a call of the run."""
    parts = (run.usage or {}).get("by_model")
    return [each for each in (ctx.model, run.model, *(parts if isinstance(parts, Mapping) else ())) if each]


def _bare(model: str) -> str:
    """Return a model's own name, without what gateways and clouds add to it or write in another way."""
    name = model.strip().lower()
    for pattern in (_OPTIONS, _OPTIONS, _ROUTE, _ROUTE):
        name = pattern.sub("", name)
    return _DOT.sub("-", name)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it says something twice")
    return found


def _worded(error: Mapping[str, Any]) -> str:
    place = ".".join(map(str, error["loc"]))
    return f"{place}: {error['msg'].lower()}" if place else str(error["msg"]).lower()
