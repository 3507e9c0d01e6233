"""The tools of a conversation: what the model is told of them, and the calls that it asks for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import anthropic

from pytest_hillclimb.engine.chain import error_text
from pytest_hillclimb.engine.ends import EngineEnd
from pytest_hillclimb.errors import BadValueError, HillclimbError, InfrastructureError
from pytest_hillclimb.model.jsonable import compact, plain

_NOT_THE_MODELS = (anthropic.AnthropicError, HillclimbError, InfrastructureError, EngineEnd)
"""Errors that say something about the eval's surroundings; the model is not told of them, the attempt fails."""

_BLOCKS: Mapping[str, str] = {
    "text": "text",
    "image": "source",
    "document": "source",
    "search_result": "content",
    "tool_reference": "tool_name",
}
"""What a result may hold besides text, by type: the field that each must have."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its definition for the API, and the function that carries it out, None for the API's own tools."""

    definition: Mapping[str, Any]
    call: Callable[[dict[str, Any]], Any] | None

    @property
    def name(self) -> str:
        """What the model calls it."""
        return str(self.definition.get("name"))


class Tools:
    """The tools that a conversation may use.

    :param given: each a function (its signature and docstring make the definition), a pair of definition or JSON schema
        and function, a tool made with the SDK's ``beta_tool``, or a definition alone for a tool of the API's own
    :raises TypeError: for anything else, and for two tools of one name
    """

    def __init__(self, given: Iterable[Any]) -> None:
        self._tools: dict[str, Tool] = {}
        for each in given:
            tool = _tool(each)
            if tool.name in self._tools:
                raise TypeError(f"claude.conversation: two tools are called {tool.name!r}")
            self._tools[tool.name] = tool

    @property
    def definitions(self) -> list[Mapping[str, Any]]:
        """What the model is told."""
        return [tool.definition for tool in self._tools.values()]

    async def result(self, use: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result block for a ``tool_use`` block; an error of the tool is a result that says so."""
        result = {"type": "tool_result", "tool_use_id": use.get("id")}
        try:
            return {**result, "content": await self._outcome(str(use.get("name")), use.get("input"))}
        except _NOT_THE_MODELS:
            raise
        except Exception as error:
            return {**result, "content": f"{type(error).__name__}: {error_text(error)}", "is_error": True}

    async def _outcome(self, name: str, arguments: Any) -> str | list[Any]:
        tool = self._tools.get(name)
        if tool is None or tool.call is None:
            raise LookupError(f"there is no tool {name!r}")
        if not isinstance(arguments, dict):
            raise ValueError("the arguments are no JSON object")
        value = tool.call(arguments) if _is_async(tool.call) else await asyncio.to_thread(tool.call, arguments)
        return _content(await value if inspect.isawaitable(value) else value)


def _tool(given: Any) -> Tool:
    if isinstance(given, Mapping):
        return Tool(given, None)
    if isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], Mapping) and callable(given[1]):
        schema, function = given
        return Tool(_definition(schema, function), _spread(function))
    if hasattr(given, "to_dict") and callable(getattr(given, "call", None)):
        return Tool(given.to_dict(), given.call)
    if callable(given):
        made: Any = anthropic.beta_async_tool(given) if _is_async(given) else anthropic.beta_tool(given)
        return Tool(made.to_dict(), made.call)
    raise TypeError(
        "claude.conversation: a tool is a function, a pair (definition, function), a tool of the SDK, or the definition"
        f" of one of the API's own; got {type(given).__name__}"
    )


def _definition(schema: Mapping[str, Any], function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the definition of a tool given as such or as the JSON schema of its arguments."""
    if "input_schema" in schema:
        return {"name": function.__name__, **schema}
    described = {"description": inspect.getdoc(function)} if inspect.getdoc(function) else {}
    return {"name": function.__name__, **described, "input_schema": schema}


def _spread(function: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    if _is_async(function):

        async def call_async(arguments: dict[str, Any]) -> Any:
            return await function(**arguments)

        return call_async
    return lambda arguments: function(**arguments)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _is_block(value: Any) -> bool:
    """Return whether *value* is a block that a result may hold, not data that has a type of its own."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    return isinstance(kind, str) and kind in _BLOCKS and isinstance(value.get(_BLOCKS[kind]), (str, Mapping, list))


def _content(value: Any) -> str | list[Any]:
    """Return what a tool gave as the content of a result: text and blocks as they are, data as JSON.

    One block stands for a list of one, and a text among blocks for a text block.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    parts = list(value) if isinstance(value, (list, tuple)) else [value]
    if any(map(_is_block, parts)) and all(_is_block(each) or isinstance(each, str) for each in parts):
        return [{"type": "text", "text": each} if isinstance(each, str) else each for each in parts]
    try:
        return compact(plain(value, "result"))
    except BadValueError:
        return str(value)
