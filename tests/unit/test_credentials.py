"""Credentials in the environment: which names are some, what is missing, and what a subprocess may see."""

from __future__ import annotations

import pytest

from pytest_hillclimb.model.credentials import environment_for, is_credential_name, missing


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "CODEX_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "GITHUB_TOKEN",
        "APP_AUTH_HEADER",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "DB_PASSWORD",
        "PGPASSWORD",
        "HTTP_COOKIE",
        "SESSION",
        "openai_api_key",
        "DATABASE_URL",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "SSH_AUTH_SOCK",
        "TEST_DATABASE_URL",
        "SENTRY_DSN",
        "HTTP_AUTHORIZATION",
        "CREDENTIAL",
        "Db_Password",
        "OPENAI_APIKEY",
        "OPENAI_KEY",
        "OPENAI_KEY_2",
        "DB_PASS",
        "MYSQL_PWD",
        "GITHUB_PAT",
        "API_KEY2",
        "OPENAI_API_KEYS",
        "AZURE_STORAGE_KEY",
        "PASSWORDS",
        "smtp_pass",
        "MYSQLPASSWD",
        "YARN_AUTHTOKEN",
        "GITHUB_TOKEN2",
        "MY_SESSION",
        "ANTHROPIC_KEY",
        "ANTHROPIC_ADMIN_KEY",
        "ANTHROPIC_CUSTOM_HEADERS",
        "AZURE_OPENAI_KEY",
        "OTEL_EXPORTER_OTLP_HEADERS",
    ],
)
def test_names_of_credentials(name: str) -> None:
    assert is_credential_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "PWD",
        "RUNNER_EVAL_CANARY",
        "TOKENIZERS_PARALLELISM",
        "AUTHOR",
        "GIT_AUTHOR_NAME",
        "NPM_CONFIG__AUTHTOKEN",
        "MAX_TOKENS",
        "BASE_URL",
        "SECRETARY",
        "MONKEY",
        "KEYBOARD",
        "KEY",
        "KEY_REPEAT",
        "SSH_PUBLIC_KEY",
        "OLDPWD",
        "ORIG_PWD",
        "PASSENGER",
        "PASSENGER_COUNT",
        "COMPASS",
        "PATTERN",
        "LOG_PATTERN",
        "BUILD_PATH",
        "DESKTOP_SESSION",
        "XDG_SESSION_TYPE",
        "",
    ],
)
def test_other_names(name: str) -> None:
    assert not is_credential_name(name)


@pytest.mark.parametrize(
    ("required", "environ", "expected"),
    [
        (["A"], {}, ("A",)),
        (["A"], {"A": ""}, ("A",)),
        (["A"], {"A": "x"}, ()),
        (["A", "B"], {"B": "x"}, ("A",)),
        (["B", "A"], {}, ("B", "A")),
        ([], {}, ()),
    ],
)
def test_what_is_unset_or_empty_is_missing(
    required: list[str], environ: dict[str, str], expected: tuple[str, ...]
) -> None:
    assert missing(required, environ) == expected


def test_a_candidate_sees_its_own_credentials_and_nobody_elses() -> None:
    environ = {
        "PATH": "/bin",
        "MINE_API_KEY": "1",
        "OTHER_API_KEY": "2",
        "OTHER_REGION": "eu",
        "SHARED": "s",
        "GITHUB_TOKEN": "3",
        "pgpassword": "4",
    }
    seen = environment_for(environ, ("MINE_API_KEY", "SHARED", "UNSET"), {"MINE_API_KEY", "OTHER_REGION", "SHARED"})
    assert seen == {"PATH": "/bin", "MINE_API_KEY": "1", "SHARED": "s"}
    assert environment_for({"PATH": "/bin"}, (), {"PATH"}) == {"PATH": "/bin"}
    assert environment_for(environ, (), ()) == {"PATH": "/bin", "OTHER_REGION": "eu", "SHARED": "s"}
