"""What an exception means: its failure class, whether another try makes sense, and whether the run must stop.

Exceptions are read by what they carry, never by importing an SDK: a numeric status, an error type in a body, headers,
the names of their classes. Chains are followed, because apps wrap an SDK's exception in their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

from pytest_hillclimb.engine.chain import attribute, causes, error_text
from pytest_hillclimb.engine.ends import EngineEnd
from pytest_hillclimb.errors import HillclimbError, InfrastructureError

_OVERLOADED = re.compile(r"overloaded", re.IGNORECASE)
_RATE_LIMIT = re.compile(r"rate.?limit", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"prompt is too long|context.{0,10}(length|window|limit)|maximum context|too many (input )?tokens", re.IGNORECASE
)
_CREDIT = re.compile(
    r"credit balance is too low|insufficient.?quota|exceeded your current quota"
    r"|reached your specified .{0,20}usage limit"
    r"|(spend|spending|usage|billing) (hard )?limit (has been |was )?(reached|exceeded)",
    re.IGNORECASE,
)
_DISABLED = re.compile(r"(organization|account|workspace) (has been|is|was) (disabled|suspended)", re.IGNORECASE)
_MODEL = re.compile(r"model", re.IGNORECASE)
_NO_CREDENTIALS = re.compile(r"Could not resolve authentication method")
"""How the anthropic SDK says, in a TypeError, that it was given no key."""
_SDK_MODULES = frozenset(["anthropic", "openai", "litellm", "mistralai", "cohere", "groq", "together", "google"])
_CONNECTION_CLASSES = re.compile(
    r"(API)?(Connection|Connect|Timeout|ReadTimeout|ConnectTimeout|WriteTimeout|PoolTimeout|Transport|Network|Read|Write"
    r"|RemoteProtocol|ServerDisconnected|ClientConnection|ClientConnector|ClientOSError|URL|APIConnection|APITimeout"
    r"|IncompleteRead|ChunkedEncoding|Protocol)(Error|Exception)?"
)
_NETWORK_MODULES = _SDK_MODULES | frozenset(
    [
        "httpx",
        "httpcore",
        "httpx2",
        "httpcore2",
        "requests",
        "urllib3",
        "urllib",
        "aiohttp",
        "http",
        "websockets",
        "botocore",
    ]
)
_BY_STATUS = {
    400: "bad_request",
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "bad_request",
    408: "connection",
    409: "server_error",
    413: "request_too_large",
    422: "bad_request",
    429: "rate_limited",
    529: "overloaded",
}
_BY_TYPE = {
    "overloaded_error": "overloaded",
    "rate_limit_error": "rate_limited",
    "api_error": "server_error",
    "timeout_error": "server_error",
    "authentication_error": "authentication",
    "invalid_api_key": "authentication",
    "permission_error": "permission",
    "billing_error": "billing",
    "insufficient_quota": "billing",
    "request_too_large": "request_too_large",
    "context_length_exceeded": "context_length",
    "model_not_found": "unknown_model",
}
_VAGUE_TYPES = ("api_error", "timeout_error")
"""Types that tell less than a status does, where there is one."""
_NAMED_TYPES = frozenset(_BY_TYPE) | {"not_found_error"}
_STOPPING = frozenset({"authentication", "billing", "permission", "unknown_model"})
_TRANSIENT_STATUS = frozenset({408, 409, 429, 529})


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception, understood: ``retry_after`` in seconds; ``stops_run`` if no other trial can do better."""

    failure_class: str
    transient: bool = False
    retry_after: float = 0.0
    stops_run: bool = False
    code: str | None = None


def classify(error: BaseException, default: str = "error") -> Failure:
    """Return what *error* means; never raises.

    :param default: the class of an exception that tells nothing, such as ``grader_error`` in the grading stage
    """
    try:
        return _classify(error, default)
    except Exception:  # foreign exceptions may be odd in ways that nobody foresaw
        return Failure(default)


def _classify(error: BaseException, default: str) -> Failure:
    given = _given_class(error)
    if isinstance(error, InfrastructureError):
        return Failure(given or "infrastructure", transient=bool(error.retryable), code=str(error.code))
    if isinstance(error, SystemExit):
        return Failure(given or ("app_exit" if default == "error" else default))
    if not isinstance(error, Exception) or isinstance(error, HillclimbError):  # which may quote a model
        return Failure(given or default)
    if (wrapped := _wrapped_class(error)) is not None:
        return Failure(given or wrapped)
    signs = _Signs.read(error)
    finer = _finer_class(signs)
    transient = finer not in _STOPPING and _is_transient(signs)
    return Failure(
        given or finer or default,
        transient=transient,
        retry_after=_retry_after(signs.headers) if transient else 0.0,
        stops_run=given is None and finer in _STOPPING and (signs.from_sdk or signs.kind in _NAMED_TYPES),
    )


@dataclass(frozen=True, slots=True)
class _Signs:
    """What a chain of exceptions says about itself; the outermost exception that says a thing wins."""

    status: int | None
    kind: str | None
    headers: Any
    messages: tuple[str, ...]
    said_by_server: tuple[str, ...]
    """The messages of those exceptions that stem from a model's API; an app's own words prove nothing about it."""
    from_sdk: bool
    connection: bool

    @classmethod
    def read(cls, error: BaseException) -> _Signs:
        chain = list(causes(error))
        kind = _first(_error_type(e) for e in chain)
        messages = tuple(error_text(e) for e in chain)
        return cls(
            status=_first(_status(e) for e in chain),
            kind=kind,
            headers=_first(attribute(e, "response", "headers") for e in chain),
            messages=messages,
            said_by_server=tuple(error_text(e) for e in chain if _module(e) in _SDK_MODULES or _error_type(e)),
            from_sdk=any(_module(e) in _SDK_MODULES or _NO_CREDENTIALS.search(error_text(e)) for e in chain),
            connection=any(_is_connection(e) for e in chain),
        )

    def says(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(m) for m in self.messages)

    def server_says(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(m) for m in self.said_by_server)


def _first(values: Iterable[Any]) -> Any:
    return next((v for v in values if v is not None), None)


def _given_class(error: BaseException) -> str | None:
    given = attribute(error, "failure_class")
    return given if isinstance(given, str) and given else None


def _wrapped_class(error: BaseException) -> str | None:
    """Return the class of an exception of this package's own that an app has wrapped in one of its own."""
    own = (_given_class(e) for e in causes(error) if isinstance(e, (HillclimbError, EngineEnd)))
    return next((given for given in own if given is not None), None)


def _status(error: BaseException) -> int | None:
    for path in (("status",), ("status_code",), ("response", "status"), ("response", "status_code")):
        value = attribute(error, *path)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return int(value)
    return None


def _error_type(error: BaseException) -> str | None:
    for path in (("body", "error", "type"), ("body", "type"), ("body", "error", "code"), ("body", "code"), ("type",)):
        value = attribute(error, *path)
        if isinstance(value, str) and value != "error":
            return value
    return None


def _module(error: BaseException) -> str:
    return str(type(error).__module__).partition(".")[0]


def _is_connection(error: BaseException) -> bool:
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    return any(
        str(k.__module__).partition(".")[0] in _NETWORK_MODULES and _CONNECTION_CLASSES.fullmatch(k.__name__)
        for k in type(error).__mro__
    )


def _is_transient(signs: _Signs) -> bool:
    asked = _header(signs.headers, "x-should-retry")
    if asked in ("true", "false"):
        return asked == "true"
    if signs.says(_OVERLOADED) or signs.says(_RATE_LIMIT) or "overloaded" in (signs.kind or ""):
        return True
    if signs.status is not None:
        return signs.status in _TRANSIENT_STATUS or 500 <= signs.status <= 599
    return signs.kind in ("rate_limit_error", *_VAGUE_TYPES) or signs.connection


def _finer_class(signs: _Signs) -> str | None:
    kind, status = signs.kind, signs.status
    if signs.server_says(_CREDIT):
        return "billing"
    if signs.server_says(_DISABLED):
        return "permission"
    if signs.says(_NO_CREDENTIALS):
        return "authentication"
    if (kind in _BY_TYPE or "overloaded" in (kind or "")) and not (kind in _VAGUE_TYPES and status in _BY_STATUS):
        return _BY_TYPE.get(kind or "", "overloaded")
    if (kind == "not_found_error" or (status == 404 and signs.from_sdk)) and signs.server_says(_MODEL):
        return "unknown_model"
    if (status in (400, 413, 422) or kind == "invalid_request_error") and signs.says(_TOO_LONG):
        return "context_length"
    if status is not None and (status in _BY_STATUS or status >= 400):
        return _BY_STATUS.get(status, "server_error" if status >= 500 else "bad_request")
    if signs.says(_OVERLOADED):
        return "overloaded"
    if signs.says(_RATE_LIMIT):
        return "rate_limited"
    if kind == "invalid_request_error":  # within a stream, whose status said that all is well
        return "bad_request"
    return "connection" if signs.connection else None


def _header(headers: Any, name: str) -> str | None:
    try:
        value = headers.get(name) or headers.get(name.title())
    except Exception:
        return None
    return str(value).strip().lower() if value is not None else None


def _retry_after(headers: Any) -> float:
    """Return the seconds that the server asks to wait: ``retry-after-ms``, or ``Retry-After`` as seconds or a date."""
    milliseconds = _number(_header(headers, "retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = _header(headers, "retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds or 0.0
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time())
    except (ValueError, OverflowError):
        return 0.0


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return None
    return float(text)
