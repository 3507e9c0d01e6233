"""A case: one input of the eval, with a stable id."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from pytest_hillclimb.errors import BadValueError
from pytest_hillclimb.model.ids import path_safe
from pytest_hillclimb.model.jsonable import compact, plain


class Attachment(BaseModel):
    """An artifact that belongs to a case or a turn.

    ``kind`` is one of image, svg, html, pdf, json, text, code, file, url; ``ref`` is relative to the flow directory.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str
    ref: str
    alt: str | None = None


class Case(BaseModel):
    """One input of the eval.

    Fields that are not listed here are kept: they are in ``case.model_extra``, and are attributes of the case unless
    it has another one of that name (such as ``copy`` or ``json``).
    ``expected`` is meant for the grader alone.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    prompt: Any = None
    input: Any = None
    expected: Any = None
    tags: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    meta: dict[str, Any] = {}

    @cached_property
    def safe_id(self) -> str:
        """The id in rows, file names and node ids."""
        return path_safe(self.id)

    @property
    def stored_prompt(self) -> str:
        """The text that a results row carries: prompt, else input, else id; anything but text as compact JSON.

        An input that JSON cannot hold, which a hook may give, counts as none.
        """
        value = next((v for v in (self.prompt, self.input) if v is not None), self.id)
        try:
            return value if isinstance(value, str) else compact(plain(value, "prompt"))
        except BadValueError:
            return self.id
