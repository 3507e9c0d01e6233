"""Small JSON files that people and other tools edit too: read strictly, written readably.

Strict means what every JSON parser accepts: UTF-8 without a byte-order mark, no NaN or Infinity. Errors give a line and
never the content, which may hold anything.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from pytest_hillclimb.model.jsonable import escape_surrogates


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which JSON does not have")


decode = json.JSONDecoder(parse_constant=_no_constant).decode
"""Parse JSON text; NaN and the infinities, which only Python reads, are a ``ValueError``."""


def parse(data: bytes) -> Any:
    """Return the JSON value of a file.

    :raises ValueError: with what is wrong, as the end of a sentence that starts with the file's name
    """
    if data.startswith(codecs.BOM_UTF8):
        raise ValueError("starts with a byte-order mark, which other tools cannot read: remove the byte-order mark")
    try:
        return decode(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"is not UTF-8 (line {line})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not valid JSON (line {error.lineno})") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def render(value: Mapping[str, Any]) -> bytes:
    """Return a JSON object as a file: indented by two, non-ASCII readable, with a final newline.

    :raises ValueError: if a number in it is not finite
    """
    return escape_surrogates(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
