"""What is taken from a process that must not spend anything, and that it comes back."""

from __future__ import annotations

import os
from pathlib import Path

import anthropic
import pytest

from pytest_hillclimb.model.withholding import restore_credentials, withhold_credentials

PLACES = {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AZURE_CONFIG_DIR", "CLAUDE_CONFIG_DIR", "CLOUDSDK_CONFIG"}
OURS = {*PLACES, "AWS_EC2_METADATA_DISABLED", "NO_GCE_CHECK"}
NO_PORT = "http://127.0.0.1:9"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without anything, in an environment without anything that leads to credentials."""
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "AWS_", "CLAUDE_", "CLOUDSDK_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def store_profile(directory: Path) -> None:
    """Write a profile and its token as the SDK's own login does."""
    for kind, text in (
        ("configs", '{"authentication": {"type": "user_oauth"}}'),
        ("credentials", '{"type": "oauth_token", "access_token": "stored-token"}'),
    ):
        (directory / kind).mkdir(parents=True)
        file = directory / kind / "default.json"
        file.write_text(text)
        file.chmod(0o600)


def called(client: anthropic.Anthropic) -> BaseException:
    """Return what a call ends with; one that is sent ends in a refused connection."""
    try:
        client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "?"}])
    except (anthropic.AnthropicError, TypeError) as error:
        return error
    raise AssertionError("nothing listens there")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_AUTH_TOKEN", "k"),
        ("ANTHROPIC_CUSTOM_HEADERS", "x-api-key: k"),
        ("ANTHROPIC_PROFILE", "work"),
        ("ANTHROPIC_IDENTITY_TOKEN_FILE", "/run/token"),
        ("ANTHROPIC_FEDERATION_RULE_ID", "fr-1"),
        ("ANTHROPIC_ORGANIZATION_ID", "org-1"),
        ("ANTHROPIC_BASE_URL", "https://user:pass@gateway.example"),
        ("OPENAI_DEFAULT_HEADERS", "authorization: k"),
        ("OPENAI_ORG_ID", "org-1"),
        ("AZURE_OPENAI_KEY", "k"),
        ("AWS_PROFILE", "work"),
        ("REGION", "eu"),
    ],
)
def test_what_leads_to_a_credential_is_gone_and_comes_back(home: Path, name: str, value: str) -> None:
    before = {name: value, "SHELL": "sh"}
    environ = dict(before)
    changed = withhold_credentials(environ, ("REGION", "PATH"))
    assert name not in environ
    assert changed[name] == value
    assert environ["SHELL"] == "sh"
    assert withhold_credentials(environ, ("REGION", "PATH")) == {}, "it is done"
    restore_credentials(environ, changed)
    assert environ == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/bin"),
        ("HOME", "/h"),
        ("PWD", "/p"),
        ("ANTHROPIC_MODEL", "m"),
        ("ANTHROPIC_DEFAULT_OPUS_MODEL", "m"),
        ("ANTHROPIC_LOG", "debug"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1234"),
        ("ANTHROPIC_VERTEX_BASE_URL", "http://127.0.0.1:1234"),
        ("OPENAI_API_BASE", "http://127.0.0.1:1234"),
        ("OPENAI_API_VERSION", "1"),
        ("AWS_REGION", "eu"),
    ],
)
def test_what_leads_to_none_stays(home: Path, name: str, value: str) -> None:
    environ = {name: value}
    withhold_credentials(environ, ("PATH", "HOME", "PWD"))
    assert environ.pop(name) == value
    assert set(environ) == OURS


@pytest.mark.parametrize("how", ["home", "variable"])
def test_the_sdk_finds_no_stored_profile(home: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    directory = home / ".config" / "anthropic"
    if how == "variable":
        directory = home / "elsewhere"
        monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(directory))
    store_profile(directory)
    sent = called(anthropic.Anthropic(base_url=NO_PORT, max_retries=0))
    assert isinstance(sent, anthropic.APIConnectionError), "the profile is one that the SDK uses"
    changed = withhold_credentials(os.environ)
    try:
        client = anthropic.Anthropic(base_url=NO_PORT, max_retries=0)  # as a conftest does when it is imported
        error = called(client)
    finally:
        restore_credentials(os.environ, changed)
    assert not isinstance(error, anthropic.APIError), "nothing was sent"
    assert "hillclimb-no-credentials-" in str(error)
    assert os.environ.get("ANTHROPIC_CONFIG_DIR") == (str(directory) if how == "variable" else None)


def test_without_profiles_the_sdk_says_that_it_has_no_key(home: Path) -> None:
    changed = withhold_credentials(os.environ)
    try:
        error = called(anthropic.Anthropic(base_url=NO_PORT, max_retries=0))
    finally:
        restore_credentials(os.environ, changed)
    assert "Could not resolve authentication method" in str(error)


def test_a_process_started_from_such_a_one_has_the_same_places(home: Path, tmp_path: Path) -> None:
    place = tmp_path / "hillclimb-no-credentials-of-another"
    place.mkdir()
    environ = {"CLOUDSDK_CONFIG": str(place / "gcloud")}
    withhold_credentials(environ)
    assert {Path(environ[name]).parent for name in PLACES} == {place}
