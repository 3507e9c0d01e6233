"""Texts that a judge must not obey, between marks that nothing in them can forge.

Two walls: the marks carry a code that occurs in none of the texts, and whatever in a text looks like such a mark is
broken. Both depend on seed and texts alone, so that equal questions are equal requests.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from pytest_hillclimb.model.jsonable import compact, encode, plain

_LOOKS_LIKE_A_MARK = re.compile(r"<(?=\s*/?\s*(?:task|background|answer))", re.IGNORECASE)


class Fence:
    """Marks texts as data.

    :param seed: ``ctx.seed``
    :param texts: everything that will be fenced
    """

    def __init__(self, seed: int, *texts: str) -> None:
        self.code = _code(seed, texts)

    def around(self, name: str, text: str) -> str:
        """Return *text* between marks.

        :param name: task, background, answer, answer_a or answer_b
        """
        broken = _LOOKS_LIKE_A_MARK.sub("&lt;", text)
        return f"<{name}-{self.code}>\n{broken}\n</{name}-{self.code}>"


def text_of(value: Any) -> str:
    """Return an output as the text that is judged, in the form that a frozen reference has on disk.

    Nothing (None) is an empty text; JSON data is compact. Whitespace around it and the kind of its line breaks, by
    which a file could be told from an answer, are dropped.
    """
    if value is None:
        return ""
    text = value if isinstance(value, str) else compact(plain(value, "output"))
    return encode(text).decode().replace("\r\n", "\n").strip()


def _code(seed: int, texts: tuple[str, ...]) -> str:
    number = 0
    while True:
        code = hashlib.sha256(f"{seed}/{number}".encode()).hexdigest()[:16]
        if not any(code in text.lower() for text in texts):
            return code
        number += 1
