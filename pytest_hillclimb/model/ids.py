"""Ids on disk: one path-safe form for rows, traces, references and node ids.

The rule is that of the public flow directory format: UTF-16 code units outside ``[A-Za-z0-9_.-]`` become one
underscore each, and an id that changed (or is longer than 129 units) is cut to 120 and gets eight hex digits of the
SHA-256 of its original, so that distinct ids stay distinct. The function is idempotent.
"""

from __future__ import annotations

import hashlib
import re
from decimal import Decimal

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
MAX_UNCHANGED = 129
"""Length from which an id may have been cut."""
_KEPT = 120


def path_safe(raw: str) -> str:
    """Return the path-safe form of an id."""
    cleaned = _UNSAFE.sub(lambda m: "__" if ord(m[0]) > 0xFFFF else "_", raw)
    if cleaned == raw and len(raw) <= MAX_UNCHANGED:
        return raw
    digest = hashlib.sha256(_SURROGATE.sub("\ufffd", raw).encode()).hexdigest()
    return f"{cleaned[:_KEPT]}-{digest[:8]}"


def id_text(value: object) -> str:
    """Return an id given as a JSON scalar as text, the way JavaScript's ``String`` spells it (``1.0`` is ``1``)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return _number_text(value)
    return str(value)


def _number_text(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    if 1e-6 <= abs(value) < 1e21:
        text = format(Decimal(repr(value)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+d}"


def trial_seed(case_id: str, rep: int) -> int:
    """Return the seed of a trial: an int below 2**32 that depends only on the case and the repetition."""
    text = _SURROGATE.sub("\ufffd", f"{case_id}\0{rep}")
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
