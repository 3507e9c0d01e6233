"""Requests and answers of the Messages API as turns of a transcript.

Text stays text; what a reader cannot read (images, documents, encrypted results) never enters it: it is kept beside the
transcript as an attachment, or named where it cannot be kept.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_hillclimb.engine.recording import Attach
from pytest_hillclimb.errors import AttachmentError
from pytest_hillclimb.model.case import Attachment
from pytest_hillclimb.model.run import Turn

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_SUFFIXES = {"application/pdf": "pdf", "text/plain": "txt", "image/svg+xml": "svg"}
_REDACTED = "[redacted by the API]"


class Transcriber:
    """Makes turns.

    :param attach: keeps a file of the attempt (``ctx.attach``); without it files are only named
    :param tools: the names of the tools by the ids of their calls, as far as they are known; more are added
    """

    def __init__(self, attach: Attach | None, tools: dict[str, str] | None = None) -> None:
        self._attach = attach
        self._tools = {} if tools is None else tools

    def request(self, body: Mapping[str, Any]) -> list[Turn]:
        """Return the turns of a request: its system prompt, and all messages."""
        turns = self._turns("system", body.get("system") or ())
        for message in _mappings(body.get("messages")):
            turns += self._turns(str(message.get("role", "user")), message.get("content"))
        return turns

    def answer(self, content: Iterable[Mapping[str, Any]]) -> list[Turn]:
        """Return the turns of an answer's blocks."""
        return self._turns("assistant", list(content))

    def _turns(self, role: str, content: Any) -> list[Turn]:
        if isinstance(content, str):
            return [Turn(role=role, content=content)]
        building = _Building(role)
        for block in _mappings(content):
            self._add(building, block)
        return building.finished()

    def _add(self, building: _Building, block: Mapping[str, Any]) -> None:
        kind = str(block.get("type"))
        if kind == "text":
            building.add_text(str(block.get("text") or ""))
        elif kind in ("thinking", "redacted_thinking"):
            building.add_thinking(str(block.get("thinking") or _REDACTED))
        elif kind in CALLS:
            name = str(block.get("name"))
            self._tools[str(block.get("id"))] = name
            building.add(Turn(role="tool_call", name=name, content=_pretty(block.get("input"))))
        elif kind.endswith("tool_result"):
            building.add(self._result(block, kind))
        elif "source" in block:
            self._add_file(building, block, kind)
        else:
            building.add_text(_stable(block))

    def _result(self, block: Mapping[str, Any], kind: str) -> Turn:
        name = self._tools.get(str(block.get("tool_use_id")), kind.removesuffix("_tool_result"))
        inner = _Building("tool_result")
        content = block.get("content")
        if isinstance(content, str) or content is None:
            inner.add_text(content or "")
        elif isinstance(content, (list, Mapping)) and kind in ("tool_result", "mcp_tool_result"):
            for part in _mappings(content):
                self._add(inner, part)
        else:
            inner.add_text(_pretty(_readable(content)))
        failed = {"is_error": True} if block.get("is_error") else {}
        return inner.joined(name=name, **failed)

    def _add_file(self, building: _Building, block: Mapping[str, Any], kind: str) -> None:
        source = block.get("source")
        source = source if isinstance(source, Mapping) else {}
        title = block.get("title")
        if source.get("type") == "url":
            building.add_attachment(Attachment(kind="url", ref=str(source.get("url"))))
        elif source.get("type") == "content":
            for part in _mappings(source.get("content")):
                self._add(building, part)
        elif (data := _data(source)) is not None:
            building.add_file(self._kept(kind, str(source.get("media_type") or "text/plain"), data, title))
        else:
            building.add_file(f"[{kind} {source.get('file_id') or title or source.get('type') or ''}]")

    def _kept(self, kind: str, media_type: str, data: bytes, title: object) -> Attachment | str:
        """Return the attachment, or what names the file where it cannot be kept."""
        sort = _sort(kind, media_type)
        suffix = _SUFFIXES.get(media_type) or media_type.rpartition("/")[2]
        name = f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}.{suffix}"
        named = f"[{title or kind}: {media_type}, {len(data)} bytes]"
        if self._attach is None:
            return named
        try:
            return self._attach(name, data, kind=sort, **({"alt": title} if isinstance(title, str) else {}))
        except AttachmentError:
            return named


class _Building:
    """Collects the blocks of one message into turns: texts that follow each other are one turn."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._turns: list[Turn] = []
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._attachments: list[Attachment] = []

    def add_text(self, text: str) -> None:
        if text:
            self._text.append(text)

    def add_thinking(self, text: str) -> None:
        if self._text:
            self._close()
        self._thinking.append(text)

    def add_attachment(self, attachment: Attachment) -> None:
        self._attachments.append(attachment)

    def add_file(self, kept: Attachment | str) -> None:
        if isinstance(kept, str):
            self.add_text(kept)
        else:
            self.add_attachment(kept)

    def add(self, turn: Turn) -> None:
        if self._text or self._attachments:
            self._close()
        self._turns.append(turn.model_copy(update=self._thought()))

    def finished(self) -> list[Turn]:
        if self._text or self._thinking or self._attachments:
            self._close()
        return self._turns

    def joined(self, **fields: Any) -> Turn:
        """Return everything as one turn."""
        return self._turn(**fields)

    def _close(self) -> None:
        self._turns.append(self._turn())

    def _turn(self, **fields: Any) -> Turn:
        if self._attachments:
            fields["attachments"] = self._attachments
        fields |= self._thought()
        turn = Turn(role=self._role, content="".join(self._text), **fields)
        self._text, self._attachments = [], []
        return turn

    def _thought(self) -> dict[str, str]:
        thinking, self._thinking = self._thinking, []
        return {"thinking": "\n\n".join(thinking)} if thinking else {}


def _mappings(values: Any) -> list[Mapping[str, Any]]:
    """Return the mappings among *values*; a text stands for a text block, one block for a list of one."""
    if isinstance(values, str):
        return [{"type": "text", "text": values}]
    if isinstance(values, Mapping):
        return [values]
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, (list, tuple)) else []


def _data(source: Mapping[str, Any]) -> bytes | None:
    data = source.get("data")
    if not isinstance(data, str):
        return None
    if source.get("type") != "base64":
        return data.encode("utf-8", "replace")
    try:
        return base64.b64decode(data)
    except (ValueError, binascii.Error):
        return None


def _sort(kind: str, media_type: str) -> str:
    """Return the kind of attachment."""
    if media_type == "image/svg+xml":
        return "svg"
    if kind == "image":
        return "image"
    return {"application/pdf": "pdf", "text/plain": "text"}.get(media_type, "file")


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _stable(block: Mapping[str, Any]) -> str:
    """Return a block that has no turn of its own, the same when a request repeats it in another order."""
    told = {key: item for key, item in block.items() if item is not None}
    return json.dumps(_readable(told), indent=2, ensure_ascii=False, default=str, sort_keys=True)


def _readable(value: Any) -> Any:
    """Return *value* without what is encrypted or encoded, which tells a reader nothing."""
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if not str(key).startswith("encrypted_")}
        if kept.get("type") == "base64" and "data" in kept:
            kept["data"] = f"[{len(str(kept['data']))} characters]"
        return {key: _readable(item) for key, item in kept.items()}
    return [_readable(item) for item in value] if isinstance(value, (list, tuple)) else value
