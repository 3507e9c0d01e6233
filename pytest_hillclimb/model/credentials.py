"""Credentials in the environment: what a candidate must have, and what its subprocesses may see."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

# Words of a name, between underscores, perhaps with a number (API_KEY2). A plural that counts (MAX_TOKENS) is none.
_SEGMENTS = (
    "API_?KEYS?",
    "ACCESS_?KEYS?",
    "PRIVATE_?KEYS?",
    "AUTH",
    "AUTHORIZATION",
    "(?<!__)AUTHTOKEN",  # NPM_CONFIG__AUTHTOKEN is none, by the golden values of the matrix
    "COOKIES?",
    "CREDS?",
    "CREDENTIALS?",
    "(?:CUSTOM|OTLP)_HEADERS",  # among which is often one that authorizes
    "JWT",
    "PASSPHRASES?",
    "[A-Z0-9]*PASSWD",
    "[A-Z0-9]*PASSWORDS?",  # PGPASSWORD and its kin
    "SECRETS?",
    "SESSION",
    "TOKEN",
    # Addresses that have a password in them.
    "(?:DATABASE|DB|POSTGRES|POSTGRESQL|MYSQL|MONGO|MONGODB|REDIS|AMQP)_UR[IL]",
    "CONNECTION_STRING",
    "DSN",
)
# Words that say so only at the end of a name, behind one that says whose it is: PWD itself is a directory.
_ENDINGS = (
    "(?<!PUBLIC_)(?<!PRIMARY_)(?<!FOREIGN_)(?<!SORT_)(?<!PARTITION_)(?<!CACHE_)KEYS?",
    "PASS",
    "(?<!OLD_)(?<!ORIG_)(?<!ORIGINAL_)(?<!INITIAL_)(?<!INIT_)PWD",
    "PAT",
)
# What a desktop tells of the session that somebody is logged in to.
_ORDINARY = r"(?:DESKTOP_SESSION\Z|XDG_SESSION_|DBUS_SESSION_BUS_|SESSION_MANAGER\Z)"
_CREDENTIAL = re.compile(
    rf"(?!{_ORDINARY})(?:.*_)?(?:(?:{'|'.join(_SEGMENTS)})\d*(?:_|\Z)|(?<=_)(?:{'|'.join(_ENDINGS)})_?\d*\Z)",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
NEEDED = frozenset({"PATH", "HOME", "PWD"})
"""What no process does without, so that it is never taken away, whoever requires it."""


def is_credential_name(name: str) -> bool:
    """Return whether an environment variable of this name, in whatever case, is likely to hold a secret."""
    return _CREDENTIAL.match(name) is not None


def missing(required: Iterable[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return those of the required names that are unset or empty, in the order given."""
    return tuple(name for name in required if not environ.get(name))


def environment_for(
    environ: Mapping[str, str], required: Collection[str], all_required: Collection[str]
) -> dict[str, str]:
    """Return what the subprocesses of a candidate may see of *environ*.

    :param required: names that this candidate requires, which it sees
    :param all_required: names that any candidate requires; it sees no other of these, nor any that looks like a
        credential
    """
    own, others = set(required), set(all_required) - NEEDED
    return {
        name: value
        for name, value in environ.items()
        if name in own or not (name in others or is_credential_name(name))
    }
