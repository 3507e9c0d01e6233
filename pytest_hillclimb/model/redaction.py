"""Redaction: no secret is stored or shown. What has the shape of one is replaced, whoever wrote it.

Shapes are those of the well-known vendors, any bearer token, JSON web tokens, private keys and passwords in addresses;
on top come the user's own patterns and the values of environment variables whose names look like credentials.

Pattern: what later outputs are compared with is cleaned by a stricter redactor, ``Redactor.strict``, which takes only
what is unmistakably a secret: a sentence about a bearer token must stay equal to itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.model.credentials import is_credential_name

REDACTED = "[REDACTED]"
MIN_VALUE_CHARS = 8
"""Values of environment variables that are shorter are too common to be looked for."""
MIN_LINE_CHARS = 16
"""Lines of a value of several lines are looked for too, unless they are shorter; so are strictly values like words."""

_MAX_DEPTH = 200

# Where a secret may begin. A text that went through repr() or JSON has \n before it, of which the n is no part of it.
_AFTER_WORD = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
_AFTER_NAME = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"  # also behind an underscore

# Shapes of any letter case that are common enough in names to be looked for at the start of a word alone.
_GENERAL = (
    r"sk-[a-z0-9_-]{8,}",
    r"(?:bearer\s+)+[^\s\"'`,;<>()\[\]{}\\]*[a-z0-9_]=*",
    r"akia[a-z0-9]{16}(?![a-z0-9])",
)
_VENDORS_ANY = (r"sk-(?:ant|proj|or|svcacct|admin)-[\w-]{8,}", r"xox[abeoprs]-[A-Za-z0-9-]{10,}")
_VENDORS_STRICT = (
    r"(?i:bearer)\s+(?=[^\s\d]*\d)(?=[^\sA-Za-z]*[A-Za-z])[A-Za-z0-9._~+/|-]{16,}=*",
    r"sk-(?:ant|proj|or|svcacct|admin)-(?=[\w-]*\d)[\w-]{16,}",
    r"sk-(?=[A-Za-z0-9]*\d)[A-Za-z0-9]{32,}",
    r"xox[abeoprs]-(?=[A-Za-z0-9-]*\d)[A-Za-z0-9-]{16,}",
)
_VENDORS = (
    r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"gh[opsur]_[A-Za-z0-9]{36,}",
    r"github_pat_\w{22,}",
    r"glpat-[\w-]{20,}",
    r"xapp-[A-Za-z0-9-]{20,}",
    r"AIza[\w-]{35}",
    r"ya29\.[\w-]{20,}",
    r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"whsec_[A-Za-z0-9+/]{16,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[\w-]{50,}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}",
    r"gsk_[A-Za-z0-9]{20,}",
    r"xai-[A-Za-z0-9]{20,}",
    r"r8_[A-Za-z0-9]{30,}",
    r"pplx-[A-Za-z0-9]{20,}",
    r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",  # a JSON web token: both parts begin with an encoded {"
)
_KEY_BEGINS = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_HAS_BODY = r"(?=[\s\S]{0,300}?[A-Za-z0-9+/]{32})"  # a text about such keys has none
_KEY_ENDS = r"(?:(?:(?!-----)[\s\S]){0,20000}+-----END [A-Z0-9 ]{0,50}-----|(?:[A-Za-z0-9+/=\r\n]|\\[nr])*+)"
_IN_ADDRESS = r"(?<=://)[^\s/:@?#\"'<>]{0,100}:[^\s/@?#\"'<>]{1,300}(?=@)"


def _shapes(general_after: str) -> str:
    vendors = "|".join((*_VENDORS_ANY, *_VENDORS))
    general = rf"{general_after}(?i:{'|'.join(_GENERAL)})"
    return rf"{general}|{_AFTER_NAME}(?:{vendors})|{_KEY_BEGINS}{_KEY_ENDS}|{_IN_ADDRESS}"


_STRICT_SHAPES = (
    rf"{_AFTER_NAME}(?:{'|'.join((*_VENDORS_STRICT, *_VENDORS))})|{_KEY_BEGINS}{_HAS_BODY}{_KEY_ENDS}|{_IN_ADDRESS}"
)
_SHAPED = re.compile(_shapes(_AFTER_NAME), re.ASCII)


def secret_shaped(text: str) -> bool:
    """Return whether a text that should hold no secret has the shape of one in it, also behind an underscore."""
    return _SHAPED.search(text) is not None


class Redactor:
    """Replaces secrets in texts and in JSON-like data. It never raises.

    :param patterns: regular expressions of further secrets, of which the whole match is replaced
    :param environ: environment whose credentials are looked for by value, from ``MIN_VALUE_CHARS`` characters on
    :param where: how messages name the source of the patterns
    :raises OptionError: for a pattern that cannot be used
    """

    def __init__(
        self, patterns: Iterable[str] = (), environ: Mapping[str, str] = {}, where: str = "redaction patterns"
    ) -> None:
        self._values = _credentials(environ)
        self._own = tuple(_compiled(pattern, where) for pattern in patterns)
        self._patterns = (_known(self._values, _shapes(_AFTER_WORD)), *self._own)

    @cached_property
    def strict(self) -> Redactor:
        """A redactor of unmistakable secrets alone, for what is compared later.

        They are keys of vendors, web tokens, private keys, passwords in addresses, the user's patterns, and values of
        credentials with 16 characters or more, or with both letters and digits.
        """
        redactor = Redactor()
        redactor._values = [value for value in self._values if not _is_word(value)]
        redactor._own = self._own
        redactor._patterns = (_known(redactor._values, _STRICT_SHAPES), *self._own)
        return redactor

    def text(self, text: str, limit: int | None = None) -> str:
        """Return *text* without its secrets, then cut to *limit* characters."""
        for pattern in self._patterns:
            text = pattern.sub(REDACTED, text)
        return text if limit is None else text[:limit]

    def data(self, value: Any, keep: frozenset[str] = frozenset()) -> Any:
        """Return JSON-like data without the secrets in its texts: the very same object when there are none.

        Keys of mappings are left alone. What contains itself, or is nested deeper than 200 levels, is replaced.

        :param keep: keys whose values are left alone, wherever they occur
        """
        return self._data(value, keep, ())

    def _data(self, value: Any, keep: frozenset[str], inside: tuple[int, ...]) -> Any:
        if isinstance(value, str):
            clean = self.text(value)
            return value if clean == value else clean
        if not isinstance(value, (Mapping, list, tuple)):
            return value
        if len(inside) >= _MAX_DEPTH or id(value) in inside:
            return REDACTED
        inside = (*inside, id(value))
        if isinstance(value, Mapping):
            items = {k: v if k in keep else self._data(v, keep, inside) for k, v in value.items()}
            return items if any(items[k] is not v for k, v in value.items()) else value
        parts = [self._data(each, keep, inside) for each in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return tuple(parts) if isinstance(value, tuple) else parts


def _credentials(environ: Mapping[str, str]) -> list[str]:
    """Return the values to look for, longer ones first so that none hides another's end.

    Each is looked for also as JSON writes it, and by its lines, as it may be printed line by line. A line such as
    ``-----BEGIN CERTIFICATE-----`` is no secret.
    """
    values = {value.strip() for name, value in environ.items() if is_credential_name(name)}
    long = {value for value in values if len(value) >= MIN_VALUE_CHARS}
    lines = {line.strip() for value in long for line in value.splitlines() if not line.strip().startswith("-----")}
    long |= {line for line in lines if len(line) >= MIN_LINE_CHARS}
    return sorted(long | {json.dumps(value)[1:-1] for value in long}, key=lambda value: (-len(value), value))


def _known(values: Iterable[str], shapes: str) -> re.Pattern[str]:
    return re.compile("|".join([*map(re.escape, values), shapes]), re.ASCII)


def _is_word(value: str) -> bool:
    """Return whether a value may as well be an ordinary word."""
    mixed = any(c.isalpha() for c in value) and any(c.isdigit() for c in value)
    return len(value) < MIN_LINE_CHARS and not mixed


def _compiled(pattern: str, where: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:  # a warning where they are made errors
        raise OptionError(f"{where}: {pattern!r} is no regular expression: {error}") from None
    if compiled.search(""):
        raise OptionError(f"{where}: {pattern!r} matches the empty text, so it would match everywhere")
    return compiled
