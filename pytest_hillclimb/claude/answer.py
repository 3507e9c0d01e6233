"""An answer of the Messages API as plain data, put together from whatever has come of it.

Raw JSON rather than the SDK's models: an answer that has broken off, or one with blocks, events and usage fields that
no model knows yet, is kept as far as it came.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_hillclimb.engine.final_answer import Flaw

_FINAL = frozenset({"end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "refusal"})
_OPEN = {
    None: "the answer has no stop_reason: it was cut off",
    "tool_use": "the model waits for the result of a tool (tool_use)",
    "pause_turn": "the model has paused its turn (pause_turn) and waits to go on",
}
_NO_MESSAGE = "the address does not answer like the Messages API: what came with status 200 is no message"
_GROWING = ("text", "thinking", "signature", "content")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; ``whole`` tells whether it came to its end."""

    message: Mapping[str, Any]
    whole: bool

    @classmethod
    def of_json(cls, data: object) -> Answer:
        """Return the answer that a plain response holds, an empty one for what is none."""
        if not isinstance(data, Mapping) or data.get("type") == "error":
            return cls({}, whole=False)
        return cls(data, whole=True)

    @classmethod
    def of_events(cls, events: Iterable[object]) -> Answer:
        """Return the answer that a stream has told so far."""
        telling = _Telling()
        for event in events:
            if isinstance(event, Mapping):
                telling.add(event)
        return cls(telling.message, telling.whole)

    @property
    def id(self) -> str | None:
        """What the API calls the answer."""
        return _text_or_none(self.message.get("id"))

    @property
    def content(self) -> list[dict[str, Any]]:
        """The blocks."""
        blocks = self.message.get("content")
        return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []

    @property
    def text(self) -> str:
        """The text of all text blocks, which citations cut in pieces; empty when there is none."""
        return "".join(str(block.get("text") or "") for block in self.content if block.get("type") == "text")

    @property
    def tool_uses(self) -> list[dict[str, Any]]:
        """The blocks by which the model asks the client to call a tool."""
        return [block for block in self.content if block.get("type") == "tool_use"]

    @property
    def model(self) -> str | None:
        """The model as served."""
        return _text_or_none(self.message.get("model"))

    @property
    def stop_reason(self) -> str | None:
        """Why the model stopped; None while it has not."""
        return _text_or_none(self.message.get("stop_reason"))

    @property
    def flaw(self) -> Flaw | None:
        """Why it is none that could be graded; None when the model has come to an end."""
        if not isinstance(self.message.get("content"), list):
            return Flaw("incomplete", _NO_MESSAGE)
        reason = self.stop_reason
        if reason in _FINAL:
            return None
        if reason in _OPEN:
            return Flaw("incomplete", _OPEN[reason])
        return Flaw("unknown_stop_reason", f"the model stopped for an unknown reason: {reason}")

    @property
    def usage(self) -> dict[str, Any] | None:
        """The usage, with every field that the API gave."""
        usage = self.message.get("usage")
        return usage if isinstance(usage, dict) else None

    @property
    def web_searches(self) -> int:
        """How many web searches the API made, as the usage tells, else as the blocks show."""
        used = (self.usage or {}).get("server_tool_use")
        told = used.get("web_search_requests") if isinstance(used, Mapping) else None
        if isinstance(told, int) and not isinstance(told, bool):
            return told
        return sum(b.get("type") == "server_tool_use" and b.get("name") == "web_search" for b in self.content)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


class _Telling:
    """Puts the events of a stream together."""

    def __init__(self) -> None:
        self.message: dict[str, Any] = {}
        self.whole = False
        self._blocks: dict[str, dict[str, Any]] = {}
        self._inputs: dict[str, str] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "message_start":
            self.message = dict(_mapping(event.get("message")))
            self.message["content"] = []
        elif kind == "content_block_start":
            block = dict(_mapping(event.get("content_block")))
            self._blocks[str(event.get("index"))] = block
            self.message.setdefault("content", []).append(block)
        elif kind == "content_block_delta":
            self._grow(str(event.get("index")), _mapping(event.get("delta")))
        elif kind == "message_delta":
            self.message |= _known(event.get("delta"))
            if usage := _known(event.get("usage")):
                self.message["usage"] = {**_mapping(self.message.get("usage")), **usage}
        elif kind == "message_stop":
            self.whole = True

    def _grow(self, index: str, delta: Mapping[str, Any]) -> None:
        block = self._blocks.setdefault(index, {})
        for key in _GROWING:
            if isinstance(piece := delta.get(key), str):
                block[key] = (block.get(key) or "") + piece
        if delta.get("citation") is not None:
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        if isinstance(piece := delta.get("partial_json"), str):
            self._inputs[index] = self._inputs.get(index, "") + piece
            block["input"] = _json_or_text(self._inputs[index])


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:  # as long as not all of it is there, or for ever if the model wrote none
        return text


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _known(value: object) -> dict[str, Any]:
    """Return the keys that say something: counts of a delta are totals, and null where they do not apply."""
    return {key: item for key, item in _mapping(value).items() if item is not None}
