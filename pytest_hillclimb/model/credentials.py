"""Credentials in the environment: what a candidate must have, and what its subprocesses may see."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, MutableMapping

# Words of a name, between underscores. A plural that counts (MAX_TOKENS) is none of them.
_SEGMENTS = (
    "API_?KEY",
    "ACCESS_?KEY",
    "PRIVATE_?KEY",
    "AUTH",
    "AUTHORIZATION",
    "COOKIE",
    "CREDENTIALS?",
    "PASSPHRASE",
    "PASSWD",
    "[A-Z0-9]*PASSWORD",  # PGPASSWORD and its kin
    "SECRETS?",
    "SESSION",
    "TOKEN",
    # Addresses that have a password in them.
    "(?:DATABASE|DB|POSTGRES|POSTGRESQL|MYSQL|MONGO|MONGODB|REDIS|AMQP)_UR[IL]",
    "CONNECTION_STRING",
    "DSN",
)
_CREDENTIAL = re.compile(rf"(?:^|_)(?:{'|'.join(_SEGMENTS)})(?:_|$)", re.IGNORECASE | re.ASCII)


def is_credential_name(name: str) -> bool:
    """Return whether an environment variable of this name, in whatever case, is likely to hold a secret."""
    return _CREDENTIAL.search(name) is not None


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
    own, others = set(required), set(all_required)
    return {
        name: value
        for name, value in environ.items()
        if name in own or not (name in others or is_credential_name(name))
    }


def drop_credentials(environ: MutableMapping[str, str], required: Collection[str] = ()) -> dict[str, str]:
    """Remove from *environ* what looks like a credential by its name, and what is *required*; return it.

    Other threads may do the same.
    """
    names = [name for name in list(environ) if name in required or is_credential_name(name)]
    found = {name: environ.pop(name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}
