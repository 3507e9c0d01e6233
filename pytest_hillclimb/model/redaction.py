"""Redaction: no secret is stored or shown. What has the shape of one is replaced, whoever wrote it.

Shapes are those of the well-known vendors, any bearer token, JSON web tokens, private keys and passwords in addresses;
on top come the user's own patterns and the values of environment variables whose names look like credentials.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.model.credentials import is_credential_name

REDACTED = "[REDACTED]"
MIN_VALUE_CHARS = 8
"""Values of environment variables that are shorter are too common to be looked for."""

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
_VENDORS = (
    r"sk-(?:ant|proj|or|svcacct|admin)-[\w-]{8,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"gh[opsur]_[A-Za-z0-9]{36,}",
    r"github_pat_\w{22,}",
    r"glpat-[\w-]{20,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
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
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:(?!-----)[\s\S]){0,20000}+-----END [A-Z0-9 ]{0,50}-----|(?:[A-Za-z0-9+/=\r\n]|\\[nr])*+)"
)
_IN_ADDRESS = r"(?<=://)[^\s/:@?#\"'<>]{0,100}:[^\s/@?#\"'<>]{1,300}(?=@)"


def _shapes(general_after: str) -> str:
    return (
        rf"{general_after}(?i:{'|'.join(_GENERAL)})|{_AFTER_NAME}(?:{'|'.join(_VENDORS)})|{_PRIVATE_KEY}|{_IN_ADDRESS}"
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
        values = [re.escape(value) for value in _credentials(environ)]
        known = re.compile("|".join([*values, _shapes(_AFTER_WORD)]), re.ASCII)
        self._patterns = (known, *(_compiled(pattern, where) for pattern in patterns))

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
    """Return the values to look for, also as JSON writes them, longer ones first so that none hides another's end."""
    values = {value.strip() for name, value in environ.items() if is_credential_name(name)}
    long = {value for value in values if len(value) >= MIN_VALUE_CHARS}
    return sorted(long | {json.dumps(value)[1:-1] for value in long}, key=lambda value: (-len(value), value))


def _compiled(pattern: str, where: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:  # a warning where they are made errors
        raise OptionError(f"{where}: {pattern!r} is no regular expression: {error}") from None
    if compiled.search(""):
        raise OptionError(f"{where}: {pattern!r} matches the empty text, so it would match everywhere")
    return compiled
