"""Strict JSON: what a row, a trace or a reference may hold, and how it is written.

Nothing is coerced in silence: a value that JSON cannot hold is refused with the path at which it sits. Text stays
readable (no ``\\u`` escapes) except lone surrogates, which are escaped because no UTF-8 file can hold them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from pydantic import BaseModel

from pytest_hillclimb.errors import BadValueError

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MAX_DEPTH = 200
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def compact(value: Any) -> str:
    """Return *value*, which must be plain JSON, as one line of text."""
    return escape_surrogates(_compact(value))


def escape_surrogates(text: str) -> str:
    """Return JSON text with its lone surrogates written as ``\\udXXX``."""
    if text.isascii():
        return text
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def encode(text: str) -> bytes:
    """Return text as UTF-8; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def plain(value: Any, path: str) -> Any:
    """Return *value* as plain JSON data (dict, list, str, int, float, bool, None).

    Tuples become lists; numpy scalars, decimals, fractions and enum members become numbers or text; pydantic models
    become mappings of the fields that were set.

    :param value: what the user gave
    :param path: how to name the value in an error, such as ``output``
    :raises BadValueError: with the path of the first value that JSON cannot hold
    """
    return _plain(value, path, 0)


def _plain(value: Any, path: str, depth: int) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return finite(value, path)
    if depth > _MAX_DEPTH:
        raise BadValueError.at(path[:200], f"nested deeper than {_MAX_DEPTH} levels, or contains itself")
    if isinstance(value, BaseModel):
        return {k: _plain(v, f"{path}.{k}", depth + 1) for k, v in _given(value).items()}
    if isinstance(value, Mapping):
        return {_key(k, path): _plain(v, f"{path}.{k}", depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
    if isinstance(value, Enum) and not isinstance(value, (str, int, float)):
        return _plain(value.value, path, depth + 1)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (int, float, Decimal, Fraction)) or _is_scalar(value):
        return number(value, path)
    raise BadValueError.at(path, f"a value of type {type(value).__name__} cannot be stored as JSON")


def _given(model: BaseModel) -> dict[str, Any]:
    fields = {name: getattr(model, name) for name in type(model).model_fields if name in model.model_fields_set}
    return {**fields, **(model.model_extra or {})}


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise BadValueError.at(path, f"the key {_shown(key)} is of type {type(key).__name__}; JSON keys are text")
    return key


def finite(value: float, path: str) -> float:
    """Return *value*; refuse NaN and infinities."""
    if not math.isfinite(value):
        raise BadValueError.at(path, f"{value} is not a finite number")
    return value


def number(value: Any, path: str) -> int | float | bool:
    """Return any sane number as a plain bool, int or float.

    Accepted are bool, int, float and their subclasses, Decimal, Fraction, and 0-dimensional arrays or scalars with
    ``dtype`` and ``item()`` (numpy and its kin).

    :raises BadValueError: for NaN, infinities, integers that no float can hold, and anything that is no number
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _bounded(int(value), path)
    if isinstance(value, float):
        return finite(float(value), path)
    if isinstance(value, (Decimal, Fraction)):
        return _real(value, path)
    if _is_scalar(value):
        return _scalar(value, path)
    raise BadValueError.at(path, f"expected a number, got a value of type {type(value).__name__}")


def _is_scalar(value: object) -> bool:
    return hasattr(value, "dtype") and getattr(value, "shape", None) == ()


def _bounded(value: int, path: str) -> int:
    try:
        float(value)
    except OverflowError:
        raise BadValueError.at(path, "the integer is too large for a JSON number") from None
    return value


def _real(value: Decimal | Fraction, path: str) -> float:
    try:
        return finite(float(value), path)
    except (OverflowError, ValueError):
        raise BadValueError.at(path, f"{_shown(value)} is not a finite number") from None


def _scalar(value: Any, path: str) -> int | float | bool:
    item = value.item()
    if isinstance(item, float) and getattr(value, "itemsize", 8) < 8:
        # Through the short spelling, so that float32(0.1) is 0.1 and not 0.10000000149011612.
        with suppress(ValueError):
            item = float(str(value))
    if not isinstance(item, (bool, int, float)):
        raise BadValueError.at(path, f"expected a number, got a value of type {type(value).__name__}")
    return number(item, path)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # a user's __repr__ may do anything
        return f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:77] + "..."
