"""What an exception means: its class, whether it is tried again, and whether it ends the whole run."""

from __future__ import annotations

import asyncio
import urllib.error
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import anthropic
import pytest

from pytest_hillclimb.engine.classify import Failure, classify
from pytest_hillclimb.errors import BadValueError, InfrastructureError


def http_response(status: int, headers: dict[str, str] | None = None) -> Any:
    return SimpleNamespace(status_code=status, headers=headers or {}, request=None)


def sdk_error(
    kind: type[anthropic.APIStatusError],
    error_type: str | None,
    message: str = "refused",
    *,
    status: int | None = None,
    headers: dict[str, str] | None = None,
) -> anthropic.APIStatusError:
    """Return the exception that the SDK raises for an answer of the API, without a type for one that is no JSON."""
    body = {"type": "error", "error": {"type": error_type, "message": message}} if error_type else None
    status = status or kind.status_code
    text = f"Error code: {status} - {body}" if body else message
    return kind(text, response=http_response(status, headers), body=body)


def streamed(error_type: str, message: str) -> anthropic.APIStatusError:
    """Return the exception that the SDK raises for an error event in a stream, whose HTTP status is 200."""
    body = {"type": "error", "error": {"type": error_type, "message": message}}
    return anthropic.APIStatusError(f"{body}", response=http_response(200), body=body)


class Bare(Exception):
    """An exception of the app's own that carries whatever it is given."""

    def __init__(self, message: str = "failed", **fields: Any) -> None:
        super().__init__(message)
        self.__dict__.update(fields)


def wrapped(cause: BaseException, message: str = "the app failed") -> Exception:
    try:
        raise RuntimeError(message) from cause
    except RuntimeError as error:
        return error


def foreign(module: str, name: str, base: type[Exception] = Exception) -> Exception:
    """Return an exception of a library that is not installed here."""
    return type(name, (base,), {"__module__": module})("failed")


@pytest.mark.parametrize(
    ("error", "failure_class", "transient", "stops_run"),
    [
        (sdk_error(anthropic.RateLimitError, "rate_limit_error"), "rate_limited", True, False),
        (sdk_error(anthropic.RateLimitError, None), "rate_limited", True, False),
        (sdk_error(anthropic.InternalServerError, "overloaded_error", status=529), "overloaded", True, False),
        (sdk_error(anthropic.InternalServerError, None, status=529), "overloaded", True, False),
        (sdk_error(anthropic.InternalServerError, "api_error", status=500), "server_error", True, False),
        (sdk_error(anthropic.InternalServerError, None, "<html>", status=502), "server_error", True, False),
        (sdk_error(anthropic.InternalServerError, "timeout_error", status=504), "server_error", True, False),
        (sdk_error(anthropic.ConflictError, None), "server_error", True, False),
        (sdk_error(anthropic.APIStatusError, None, status=408), "connection", True, False),
        (anthropic.APIConnectionError(request=None), "connection", True, False),
        (anthropic.APITimeoutError(request=None), "connection", True, False),
        (sdk_error(anthropic.BadRequestError, "invalid_request_error"), "bad_request", False, False),
        (sdk_error(anthropic.UnprocessableEntityError, "invalid_request_error"), "bad_request", False, False),
        (
            sdk_error(
                anthropic.BadRequestError,
                "invalid_request_error",
                "prompt is too long: 209063 tokens > 200000 maximum",
            ),
            "context_length",
            False,
            False,
        ),
        (
            sdk_error(
                anthropic.BadRequestError,
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
            ),
            "context_length",
            False,
            False,
        ),
        (
            sdk_error(anthropic.APIStatusError, "request_too_large", "too large", status=413),
            "request_too_large",
            False,
            False,
        ),
        (
            sdk_error(
                anthropic.BadRequestError,
                "invalid_request_error",
                "Your credit balance is too low to access the API. Go to Plans & Billing to add credits.",
            ),
            "billing",
            False,
            True,
        ),
        (sdk_error(anthropic.APIStatusError, "billing_error", status=402), "billing", False, True),
        (sdk_error(anthropic.AuthenticationError, "authentication_error"), "authentication", False, True),
        (sdk_error(anthropic.AuthenticationError, None), "authentication", False, True),
        (sdk_error(anthropic.PermissionDeniedError, "permission_error"), "permission", False, True),
        (
            sdk_error(anthropic.NotFoundError, "not_found_error", "model: claude-nonesuch-9"),
            "unknown_model",
            False,
            True,
        ),
        (sdk_error(anthropic.NotFoundError, "not_found_error", "no such file: file_1"), "bad_request", False, False),
    ],
)
def test_exceptions_of_a_model_sdk(error: Exception, failure_class: str, transient: bool, stops_run: bool) -> None:
    assert classify(error) == Failure(failure_class, transient=transient, stops_run=stops_run)
    assert classify(wrapped(error)) == Failure(failure_class, transient=transient, stops_run=stops_run)


@pytest.mark.parametrize(
    ("error_type", "message", "failure_class"),
    [
        ("overloaded_error", "Overloaded", "overloaded"),
        ("rate_limit_error", "Number of request tokens has exceeded your limit", "rate_limited"),
        ("api_error", "Internal server error", "server_error"),
    ],
)
def test_an_error_event_in_a_stream_counts_by_its_type_whatever_the_status_of_the_stream(
    error_type: str, message: str, failure_class: str
) -> None:
    assert classify(streamed(error_type, message)) == Failure(failure_class, transient=True)


@pytest.mark.parametrize(
    ("status", "failure_class", "transient"),
    [
        (400, "bad_request", False),
        (401, "authentication", False),
        (402, "billing", False),
        (403, "permission", False),
        (404, "bad_request", False),
        (408, "connection", True),
        (409, "server_error", True),
        (413, "request_too_large", False),
        (418, "bad_request", False),
        (422, "bad_request", False),
        (429, "rate_limited", True),
        (500, "server_error", True),
        (503, "server_error", True),
        (529, "overloaded", True),
        (599, "server_error", True),
        (200, "error", False),
        (302, "error", False),
        ("429", "error", False),
        (429.0, "error", False),
        (600, "error", False),
        (True, "error", False),
    ],
)
def test_a_bare_status_names_the_class_and_never_ends_the_run(
    status: object, failure_class: str, transient: bool
) -> None:
    expected = Failure(failure_class, transient=transient)
    response = SimpleNamespace(status=status)
    forms = [Bare(status=status), Bare(status_code=status), Bare(response=response)]
    forms.append(Bare(response=SimpleNamespace(status_code=status)))
    assert [classify(error) for error in forms] == [expected] * 4


def test_a_bare_404_that_speaks_of_a_model_fails_only_its_own_item() -> None:
    assert classify(Bare("model not found in the registry", status=404)) == Failure("bad_request")


@pytest.mark.parametrize(
    ("body", "failure_class"),
    [
        ({"error": {"type": "authentication_error"}}, "authentication"),
        ({"error": {"type": "permission_error"}}, "permission"),
        ({"error": {"type": "billing_error"}}, "billing"),
        ({"error": {"code": "insufficient_quota"}}, "billing"),
        ({"code": "invalid_api_key"}, "authentication"),
        ({"code": "model_not_found"}, "unknown_model"),
    ],
)
def test_a_body_that_names_an_account_error_ends_the_run_whoever_raised_it(
    body: dict[str, Any], failure_class: str
) -> None:
    assert classify(Bare("refused", body=body)) == Failure(failure_class, stops_run=True)


@pytest.mark.parametrize(
    "error",
    [
        Bare("Overloaded"),
        Bare("the provider is OVERLOADED right now"),
        Bare("failed", body={"error": {"type": "overloaded_error"}}),
        Bare("failed", body={"type": "overloaded_error"}),
        Bare("failed", type="overloaded_error"),
        Bare("failed", body={"error": {"type": "engine_overloaded"}}),
    ],
)
def test_overload_by_type_or_message(error: Exception) -> None:
    assert classify(error) == Failure("overloaded", transient=True)


@pytest.mark.parametrize("message", ["rate limit", "Rate-Limited", "ratelimit exceeded", "RATE_LIMIT"])
def test_rate_limits_by_message(message: str) -> None:
    assert classify(Bare(message)) == Failure("rate_limited", transient=True)


@pytest.mark.parametrize(
    "message", ["rate  limit", "429 Too Many Requests", "status 503", "load is over", "deprecated limit"]
)
def test_messages_that_say_neither_are_not_tried_again(message: str) -> None:
    assert classify(Bare(message)) == Failure("error")


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("reset"),
        TimeoutError("slow"),
        urllib.error.URLError("no route"),
        foreign("httpx", "ReadTimeout"),
        foreign("httpcore", "RemoteProtocolError"),
        foreign("requests.exceptions", "ConnectionError"),
        foreign("openai", "APIConnectionError"),
        foreign("aiohttp.client_exceptions", "ServerDisconnectedError"),
        wrapped(ConnectionRefusedError("refused")),
    ],
)
def test_connection_errors_without_a_status_are_tried_again(error: Exception) -> None:
    assert classify(error) == Failure("connection", transient=True)


@pytest.mark.parametrize("name", ["ReadTimeout", "ConnectError", "RemoteProtocolError", "ReadError"])
def test_connection_errors_of_the_http_library_that_the_sdk_streams_with_are_tried_again(name: str) -> None:
    library = pytest.importorskip("httpx2")
    assert classify(getattr(library, name)("peer closed connection")) == Failure("connection", transient=True)


def test_a_name_alone_makes_no_connection_error() -> None:
    assert classify(foreign("app.orders", "ConnectionError")) == Failure("error")


def test_an_http_error_of_the_standard_library_counts_by_its_status() -> None:
    error = urllib.error.HTTPError("http://x", 503, "unavailable", Message(), None)
    assert classify(error) == Failure("server_error", transient=True)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        AssertionError(),
        RecursionError("deep"),
        MemoryError(),
        DeprecationWarning("old"),
        FileNotFoundError("x"),
        ExceptionGroup("two", [ValueError("a"), ValueError("b")]),
    ],
)
def test_ordinary_exceptions_take_the_class_of_their_stage(error: Exception) -> None:
    assert classify(error) == Failure("error")
    assert classify(error, "grader_error") == Failure("grader_error")


def test_a_bad_value_is_of_its_stage_whatever_its_text_says() -> None:
    error = BadValueError.at("grade.overloaded", "rate limit is not a finite number")
    assert classify(error, "grader_error") == Failure("grader_error")


# --- wrapped exceptions -----------------------------------------------------------------------------------------------


def test_the_outermost_status_wins() -> None:
    assert classify(wrapped(Bare(status=429))).failure_class == "rate_limited"
    outer = Bare(status=500)
    outer.__cause__ = Bare(status=429)
    assert classify(outer).failure_class == "server_error"


def raise_while_handling(cause: Exception, *, hide: bool) -> None:
    try:
        raise cause
    except Exception:
        if hide:
            raise ValueError("its own") from None
        raise ValueError("its own")  # noqa: B904


@pytest.mark.parametrize(
    ("hide", "expected"), [(False, Failure("rate_limited", transient=True)), (True, Failure("error"))]
)
def test_an_implicit_context_is_followed_unless_it_is_suppressed(hide: bool, expected: Failure) -> None:
    with pytest.raises(ValueError, match="its own") as caught:
        raise_while_handling(Bare(status=429), hide=hide)
    assert classify(caught.value) == expected


def test_causes_in_a_circle_are_read_once() -> None:
    one, other = ValueError("a"), Bare(status=429)
    one.__context__, other.__context__ = other, one
    assert classify(one).failure_class == "rate_limited"


@pytest.mark.parametrize("message", ["billing lookup failed", "could not read the billing address of customer 7"])
def test_the_apps_own_words_around_an_sdk_error_make_no_billing_error(message: str) -> None:
    assert classify(wrapped(anthropic.APIConnectionError(request=None), message)) == Failure(
        "connection", transient=True
    )


def test_the_apps_own_words_around_an_sdk_error_make_no_unknown_model() -> None:
    missing_file = sdk_error(anthropic.NotFoundError, "not_found_error", "no such file: file_1")
    assert classify(wrapped(missing_file, "model call failed")) == Failure("bad_request")


def test_a_refused_request_that_only_mentions_billing_fails_only_its_own_item() -> None:
    error = sdk_error(
        anthropic.BadRequestError, "invalid_request_error", "tools.0.name: 'get billing info' should match '^[a-z_]+$'"
    )
    assert classify(error) == Failure("bad_request")


def test_a_rate_limit_that_points_to_a_billing_page_is_a_rate_limit() -> None:
    error = foreign("openai", "RateLimitError")
    error.args = (
        "Rate limit reached for requests per min (RPM): limit 3, used 3. Please try again in 20s. You can increase "
        "your rate limit by adding a payment method to your account at https://platform.example/account/billing.",
    )
    error.status_code = 429  # type: ignore[attr-defined]
    error.body = {"type": "requests", "code": "rate_limit_exceeded"}  # type: ignore[attr-defined]
    assert classify(error) == Failure("rate_limited", transient=True)


# --- what the server asks for -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "asked", "transient"),
    [
        (400, "true", True),
        (400, "TRUE ", True),
        (529, "false", False),
        (500, "maybe", True),
        (400, "maybe", False),
        (401, "true", False),
    ],
)
def test_the_header_x_should_retry_decides_but_for_account_errors(status: int, asked: str, transient: bool) -> None:
    error = sdk_error(anthropic.APIStatusError, None, status=status, headers={"x-should-retry": asked})
    assert classify(error).transient is transient


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({}, 0, 0),
        ({"retry-after": "7"}, 7, 7),
        ({"Retry-After": "7"}, 7, 7),
        ({"retry-after": " 1.5 "}, 1.5, 1.5),
        ({"retry-after": "0"}, 0, 0),
        ({"retry-after": "90"}, 90, 90),
        ({"retry-after": in_seconds(-60)}, 0, 0),
        ({"retry-after": "-5"}, 0, 0),
        ({"retry-after": ""}, 0, 0),
        ({"retry-after": "soon"}, 0, 0),
        ({"retry-after": "nan"}, 0, 0),
        ({"retry-after": "1e3"}, 0, 0),
        ({"retry-after": "Mon, 99 Nov 2026 12:00:30 GMT"}, 0, 0),
        ({"retry-after-ms": "250"}, 0.25, 0.25),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25, 0.25),
        ({"retry-after-ms": "x", "retry-after": "7"}, 7, 7),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], low: float, high: float) -> None:
    failure = classify(sdk_error(anthropic.RateLimitError, "rate_limit_error", headers=headers))
    assert low <= failure.retry_after <= high


def test_retry_after_may_be_a_date() -> None:
    headers = {"retry-after": in_seconds(3600)}
    failure = classify(sdk_error(anthropic.RateLimitError, "rate_limit_error", headers=headers))
    assert 3000 <= failure.retry_after <= 3601


@pytest.mark.parametrize(
    "value",
    [
        "Mon, 02 Nov 2026 99999999999999999999:00:30 GMT",
        "Mon, 02 Nov 2026 12:00:30 +99999999999999",
        "Mon, 02 Nov 0001 12:00:30",
    ],
)
def test_a_date_that_no_calendar_holds_asks_for_nothing(value: str) -> None:
    failure = classify(sdk_error(anthropic.RateLimitError, None, headers={"retry-after": value}))
    assert failure == Failure("rate_limited", transient=True)


def test_nothing_is_asked_for_by_an_error_that_is_not_tried_again() -> None:
    assert classify(sdk_error(anthropic.BadRequestError, None, headers={"retry-after": "7"})).retry_after == 0


# --- what the user says -----------------------------------------------------------------------------------------------


def test_a_given_failure_class_wins_over_all_and_ends_no_run() -> None:
    auth = sdk_error(anthropic.AuthenticationError, "authentication_error")
    auth.failure_class = "tenant_locked"  # type: ignore[attr-defined]
    assert classify(auth) == Failure("tenant_locked")
    assert classify(Bare(status=429, failure_class="busy")) == Failure("busy", transient=True)
    assert classify(Bare(failure_class="odd"), "grader_error") == Failure("odd")


@pytest.mark.parametrize("given", ["", None, 5, ["x"]])
def test_a_failure_class_that_is_no_text_is_not_given(given: object) -> None:
    assert classify(Bare(failure_class=given)) == Failure("error")


@pytest.mark.parametrize("retryable", [True, False])
def test_an_infrastructure_error_keeps_its_code_and_says_whether_it_may_be_retried(retryable: bool) -> None:
    failure = classify(InfrastructureError("sandbox_lost", retryable, "rate limit of the sandbox"))
    assert failure == Failure("infrastructure", transient=retryable, code="sandbox_lost")


@pytest.mark.parametrize("code", [0, 1, None, "usage: app [-h]"])
def test_a_system_exit_of_the_app_is_app_exit_and_of_the_grader_its_own(code: object) -> None:
    assert classify(SystemExit(code)) == Failure("app_exit")
    assert classify(SystemExit(code), "grader_error") == Failure("grader_error")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), BaseException("x")])
def test_other_control_flow_is_an_error_that_is_not_tried_again(error: BaseException) -> None:
    assert classify(error) == Failure("error")


# --- exceptions that are broken themselves ----------------------------------------------------------------------------


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("str() failed")

    __repr__ = __str__


class Raising:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)

    def __str__(self) -> str:
        raise RuntimeError("str() failed")

    def __bool__(self) -> bool:
        raise RuntimeError("bool() failed")


class RaisingProperties(Exception):
    failure_class = status = response = body = type = property(lambda self: 1 / 0)


@pytest.mark.parametrize(
    "error",
    [
        Unspeakable(),
        RaisingProperties("x"),
        Bare(response=Raising(), body=Raising(), status=Raising(), failure_class=Raising()),
        Bare(response=SimpleNamespace(headers=Raising())),
        Bare(response=SimpleNamespace(headers="retry-after: 7")),
        Bare(body="overload"),
        Bare(body={"error": "text"}),
        Bare(body={"error": ["x"]}),
        Exception(object(), b"\xff", {1, 2}, 3j),
    ],
)
def test_what_cannot_be_read_is_left_out(error: Exception) -> None:
    assert classify(error) == Failure("error")


def test_a_header_that_cannot_be_read_is_left_out() -> None:
    headers = {"retry-after": Raising(), "x-should-retry": Raising()}
    assert classify(Bare(status=429, response=SimpleNamespace(headers=headers))) == Failure(
        "rate_limited", transient=True
    )


@pytest.mark.parametrize(
    ("text", "failure_class"),
    [
        ("You have reached your specified API usage limits. You will regain access on 2027-01-01.", "billing"),
        ("Your workspace spending limit has been reached", "billing"),
        ("This organization has been disabled.", "permission"),
    ],
)
def test_an_account_that_cannot_be_used_any_more_stops_the_run_whatever_the_status(
    text: str, failure_class: str
) -> None:
    error = type("APIStatusError", (Exception,), {"__module__": "anthropic"})(text)
    error.status_code = 400
    failure = classify(error)
    assert (failure.failure_class, failure.transient, failure.stops_run) == (failure_class, False, True)
