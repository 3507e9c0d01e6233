"""Redaction: what has the shape of a secret, what only looks like it, and data that is cleaned in depth.

Nothing here may itself have the shape of a secret, so the examples are put together from parts.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.model.redaction import REDACTED, Redactor, secret_shaped

KEY = "A1b2C3d4E5f6G7h8"
SK, BEARER = "s" + "k-", "Bear" + "er "
AKIA = "AK" + "IA" + "Z" * 16
PLAIN = Redactor()


def begin(kind: str) -> str:
    return "-" * 5 + f"BEGIN {kind}PRIVATE KEY" + "-" * 5


def end(kind: str) -> str:
    return "-" * 5 + f"END {kind}PRIVATE KEY" + "-" * 5


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"key {SK}{KEY} end", f"key {REDACTED} end"),
        (f"{SK}proj-{KEY}", REDACTED),
        (f"{SK}ant-api03-{KEY}", REDACTED),
        (f"{SK}short1", None),
        (f"{SK}1234567", None),
        (f"auth: {BEARER}{KEY}x", f"auth: {REDACTED}"),
        (f"{BEARER.lower()}abc", REDACTED),
        (AKIA, REDACTED),
        (AKIA.lower(), REDACTED),
        (f"ta{SK}{KEY}", None),
        (f"my_{SK}{KEY}", None),
        (f"{BEARER}................", None),
        (f"shutdown failed with {SK}shutdown-secret-value", f"shutdown failed with {REDACTED}"),
    ],
)
def test_the_shapes_of_the_matrix(text: str, clean: str | None) -> None:
    assert PLAIN.text(text) == (text if clean is None else clean)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"my_{SK}ant-api03-{KEY}", f"my_{REDACTED}"),
        (f"('Connection failed:\\n{SK}{KEY}')", f"('Connection failed:\\n{REDACTED}')"),
        (f'{{"Authorization": "{BEARER}{KEY}==", "x": 1}}', f'{{"Authorization": "{REDACTED}", "x": 1}}'),
        (f"{BEARER}12|{KEY}/x.y~z, next", f"{REDACTED}, next"),
        (f"{BEARER}{BEARER}{KEY}.", f"{REDACTED}."),
        (f"{AKIA}9", None),
        ("g" + f"hp_{KEY * 3}", REDACTED),
        ("g" + f"ithub_pat_{KEY}_{KEY}", REDACTED),
        ("g" + f"lpat-{KEY}-{KEY}", REDACTED),
        (f"token=xo{'x'}b-12345-{KEY}", f"token={REDACTED}"),
        (f"?key=AI{'z'}a{'B' * 35}&x", f"?key={REDACTED}&x"),
        (f"s{'k'}_live_{KEY}", REDACTED),
        (f"h{'f'}_{KEY}{KEY}", REDACTED),
        (f"ey{'J'}{KEY}.ey{'J'}{KEY}.{KEY}", REDACTED),
        (f"ey{'J'}{KEY}.{KEY}", None),
        (f"a {begin('RSA ')}\nProc-Type: 4\n\nAb+/=\n{end('RSA ')} b", f"a {REDACTED} b"),
        (f"a {begin('')}\nAb+/=\nAb(cut off)", f"a {REDACTED}(cut off)"),
        ("postgres" + f"://me:{KEY}@host/db", f"postgres://{REDACTED}@host/db"),
        ("redis" + f"://:{KEY}@host", f"redis://{REDACTED}@host"),
        ("http://localhost:8080/a@b and git@host:x, http://h:80?x=a@b", None),
        ("the risk-assessment of a desk-organizer, task-force-one", None),
        ("", None),
    ],
)
def test_wider_shapes(text: str, clean: str | None) -> None:
    assert PLAIN.text(text) == (text if clean is None else clean)


@pytest.mark.parametrize(
    "text",
    [
        f"my_{SK}{KEY}",
        f"{SK}proj-{KEY}",
        f"{BEARER.lower()}{KEY}",
        f"KEY_{AKIA}",
        f"x{begin('EC ')}x",
        "https" + f"://me:{KEY}@host",
    ],
)
def test_a_manifest_is_held_to_the_wider_shape(text: str) -> None:
    assert secret_shaped(text)


@pytest.mark.parametrize(
    "text",
    [
        "codex_app_server",
        "opencode_server",
        "acpx_runtime",
        "gpt-5.6-luna",
        "openrouter/moonshotai/kimi-k2.5",
        "openrouter/openai/gpt-oss-20b",
        "claude-sonnet-4-5-20250929",
        "OPENAI_API_KEY",
        "inexpensive",
        f"ta{SK}{KEY}",
        f"{SK}learn",
        f"{BEARER}................",
        "https://api.example.com:8443/v1",
    ],
)
def test_what_a_manifest_may_say(text: str) -> None:
    assert not secret_shaped(text)


def test_a_message_is_cut_after_it_was_cleaned() -> None:
    assert PLAIN.text("x" * 1200, limit=1000) == "x" * 1000
    assert PLAIN.text(f"{'x' * 995} {SK}{KEY}", limit=1000) == f"{'x' * 995} [RED"


def test_a_clean_text_stays_clean() -> None:
    once = PLAIN.text(f"{BEARER}{KEY} and {SK}{KEY}")
    assert PLAIN.text(once) == once == f"{REDACTED} and {REDACTED}"


def test_values_of_credentials_in_the_environment_are_found_anywhere() -> None:
    environ = {
        "MY_PASSWORD": "correct horse",
        "MY_TOKEN": " correct horse battery\n",
        "A_SECRET": 'with"quote+(x)',
        "B_SECRET": "short",
        "HOME": "/home/someone",
    }
    redactor = Redactor(environ=environ)
    assert redactor.text("<correct horse battery!>") == f"<{REDACTED}!>"
    assert redactor.text("xcorrect horsex") == f"x{REDACTED}x"
    assert redactor.text(json.dumps('with"quote+(x)')) == f'"{REDACTED}"'
    assert redactor.text('with"quote+(x)') == REDACTED
    assert redactor.text("short /home/someone") == "short /home/someone"


def test_patterns_of_the_user_are_added() -> None:
    redactor = Redactor([r"(?i)emp-(\d)\1", r"card \d+"])
    assert redactor.text(f"EMP-77 emp-78 card 4111 {SK}{KEY}") == f"{REDACTED} emp-78 {REDACTED} {REDACTED}"


@pytest.mark.parametrize(("pattern", "why"), [("(", "is no regular expression"), ("a*", "matches the empty text")])
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(OptionError) as refusal:
        Redactor(["fine", pattern], where="redact in pytest.ini")
    assert str(refusal.value).startswith(f"redact in pytest.ini: {pattern!r} {why}")


def test_data_is_cleaned_in_depth() -> None:
    secret = f"{SK}{KEY}"
    data = {"a": [1, {"b": f"x {secret}"}], "t": (secret, None), "n": 1.5, secret: True}
    assert PLAIN.data(data) == {"a": [1, {"b": f"x {REDACTED}"}], "t": (REDACTED, None), "n": 1.5, secret: True}
    assert data["t"] == (secret, None)
    assert PLAIN.data(MappingProxyType({"a": secret})) == {"a": REDACTED}
    assert PLAIN.data(secret) == REDACTED


def test_what_names_a_row_is_left_alone() -> None:
    secret = f"{SK}{KEY}"
    data = {"prompt_id": secret, "meta": {"prompt_id": [secret], "x": secret}}
    assert PLAIN.data(data, keep=frozenset({"prompt_id"})) == {
        "prompt_id": secret,
        "meta": {"prompt_id": [secret], "x": REDACTED},
    }


def test_data_without_secrets_is_the_very_same() -> None:
    data: dict[str, Any] = {"a": [1, "two", (3.0, float("nan"))], "b": {"c": None}, "d": b"bytes", "e": {1, 2}}
    assert PLAIN.data(data) is data
    part = {"clean": ["x"]}
    changed = PLAIN.data({"part": part, "s": f"{SK}{KEY}"})
    assert changed["part"] is part


def test_data_that_contains_itself_or_is_too_deep_is_cut() -> None:
    loop: list[Any] = ["x"]
    loop.append(loop)
    assert PLAIN.data(loop) == ["x", REDACTED]
    deep: Any = f"{SK}{KEY}"
    for _ in range(5000):
        deep = [deep]
    assert KEY not in repr(PLAIN.data(deep))


ORDINARY = [
    "A bearer token is sent in a header.",
    f"see {SK}learn-contrib/imbalanced-learn",
    f"{SK}ant-design-components-of-today",
    "xox" + "o-hugs-and-kisses-everyone",
    "cinnamon rolls",
    f"A file with {begin('RSA ')} and {end('RSA ')} in it",
    "git@host:x and http://localhost:8080/a@b",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_passes_the_strict_redaction(text: str) -> None:
    strict = Redactor(environ={"A_SESSION": "cinnamon", "A_TOKEN": "20240101"}).strict
    assert strict.text(f"{text} 20240101") == f"{text} 20240101"
    assert strict.data([text])[0] is text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"{SK}ant-api03-{KEY}", REDACTED),
        (f"auth: {BEARER}{KEY}==", f"auth: {REDACTED}"),
        (f"{SK}{KEY}{KEY}{KEY}", REDACTED),
        (f"xo{'x'}b-12345-{KEY}", REDACTED),
        ("g" + f"hp_{KEY * 3}", REDACTED),
        (AKIA, REDACTED),
        (f"jwt ey{'J'}{KEY}.ey{'J'}{KEY}.{KEY}", f"jwt {REDACTED}"),
        (f"a {begin('RSA ')}\nProc-Type: 4\n\n{KEY * 4}\n{end('RSA ')} b", f"a {REDACTED} b"),
        ("postgres" + f"://me:{KEY}@host/db", f"postgres://{REDACTED}@host/db"),
        ("is hunter2-hunter", f"is {REDACTED}"),
        ("is correct horse battery", f"is {REDACTED}"),
        ("EMP-77", REDACTED),
    ],
)
def test_unmistakable_secrets_do_not_pass_the_strict_redaction(text: str, clean: str) -> None:
    strict = Redactor([r"EMP-\d+"], {"A_PASS": "hunter2-hunter", "B_PASS": "correct horse battery"}).strict
    assert strict.text(text) == clean


def test_a_value_of_several_lines_is_found_line_by_line() -> None:
    lines = ["-----BEGIN CERTIFICATE-----", "first line of a secret", "the second one of it", "short"]
    redactor = Redactor(environ={"A_SECRET": "\r\n".join(lines)})
    for each in (redactor, redactor.strict):
        assert [each.text(f"> {line}") for line in lines] == [
            f"> {lines[0]}",
            f"> {REDACTED}",
            f"> {REDACTED}",
            "> short",
        ]
        assert each.text("\r\n".join(lines)) == REDACTED


TEXTS = st.text(alphabet="sk-Bearer AKI_A1z\n\\eyJ.:/@", max_size=60)


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_any_text_is_cleaned_once_and_for_all(text: str) -> None:
    clean = PLAIN.text(text)
    assert PLAIN.text(clean) == clean
    assert PLAIN.data([text]) == [clean]


@pytest.mark.parametrize(
    "piece",
    [
        "bear" + "er ",
        "bear" + "er .",
        "ey" + "J",
        "-----BEG" + "IN PRIVATE KEY-----",
        "s" + "k-",
        "://a:",
        "SG.aaaa",
        "_",
    ],
)
def test_long_texts_that_nearly_match_are_read_in_one_pass(piece: str) -> None:
    redactor = Redactor(environ={"A_TOKEN": "some value"})
    for each in (redactor, redactor.strict):
        each.text(piece * (200_000 // len(piece)))
