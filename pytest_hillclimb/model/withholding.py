"""Taking credentials away from a process that must not spend anything, whatever SDK would find them.

Scope: the environment, and the places on disk that the SDKs of Anthropic, AWS, Google, Azure and Claude Code look into
by themselves. A key that code reads from a file of its own, or that a client holds already, cannot be taken away.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
from collections.abc import Collection, Mapping, MutableMapping
from functools import cache
from pathlib import Path

from pytest_hillclimb.model.credentials import NEEDED, is_credential_name

_PROFILE = "ANTHROPIC_PROFILE"
_CONFIG_DIR = "ANTHROPIC_CONFIG_DIR"
_PREFIX = "hillclimb-no-credentials-"

# Of these, all but what is certainly no way to a credential: profiles, headers, identities and their kin.
_PROVIDERS = re.compile(r"(?:ANTHROPIC|OPENAI|AZURE_OPENAI)_", re.IGNORECASE | re.ASCII)
_HARMLESS = re.compile(
    r".*_(?:.*MODELS?|(?:BASE_)?URL|(?:.*_)?BASE_URL|(?:API_)?BASE|ENDPOINT|LOG|(?:API_)?VERSION|REGION|LOCATION"
    r"|TIMEOUT\w*|\w*RETRIES|MAX_\w*TOKENS|OPEN_TELEMETRY\w*)\Z",
    re.IGNORECASE | re.ASCII,
)
_CLOUDS = frozenset({"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ROLE_ARN"})
_WITH_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]*@", re.IGNORECASE | re.ASCII)

_ELSEWHERE = {  # where SDKs look for stored credentials, unless they are told another place
    "AWS_CONFIG_FILE": "aws",
    "AWS_SHARED_CREDENTIALS_FILE": "aws",
    "AZURE_CONFIG_DIR": "azure",
    "CLAUDE_CONFIG_DIR": "claude",
    "CLOUDSDK_CONFIG": "gcloud",
}
_OFF = {"AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true"}  # a cloud machine's own identity


def withhold_credentials(environ: MutableMapping[str, str], required: Collection[str] = ()) -> dict[str, str | None]:
    """Take out of *environ* what leads to a credential, and what is *required*, and point SDKs to an empty place.

    ``PATH``, ``HOME`` and ``PWD`` stay. Once it was done, doing it again changes only what was added since. Other
    threads may do the same.

    :return: what the variables that were changed had been before, None for unset; for ``restore_credentials``
    """
    taken = set(required) - NEEDED
    changed: dict[str, str | None] = {}
    empty = _empty_place(environ.get("CLOUDSDK_CONFIG"))
    places = {name: str(empty / place) for name, place in _ELSEWHERE.items()} | _OFF
    if _has_profiles(environ):
        places[_CONFIG_DIR] = str(empty)
    for name, value in list(environ.items()):
        if name not in places and (name in taken or _leads_to_credentials(name, value)):
            environ.pop(name, None)
            changed[name] = value
    for name, place in places.items():
        if (before := environ.get(name)) != place:
            environ[name] = place
            changed[name] = before
    return changed


def restore_credentials(environ: MutableMapping[str, str], changed: Mapping[str, str | None]) -> None:
    """Undo ``withhold_credentials``."""
    for name, value in changed.items():
        if value is None:
            environ.pop(name, None)
        else:
            environ[name] = value


def _leads_to_credentials(name: str, value: str) -> bool:
    if is_credential_name(name) or name in _CLOUDS:
        return True
    if not _PROVIDERS.match(name):
        return False
    return not _HARMLESS.match(name) or _WITH_PASSWORD.match(value) is not None


def _has_profiles(environ: Mapping[str, str]) -> bool:
    """Return whether the SDK would look into profiles; without any, it must find none when it makes a client."""
    if environ.get(_CONFIG_DIR) or environ.get(_PROFILE):
        return True
    stored = [Path(base) / "Anthropic" for base in (environ.get("APPDATA"),) if base]
    try:
        return any(each.exists() for each in (*stored, Path.home() / ".config" / "anthropic"))
    except (OSError, RuntimeError):  # no home
        return False


def _empty_place(earlier: str | None) -> Path:
    """Return the directory without credentials: that of the process that started this one, else its own."""
    before = Path(earlier).parent if earlier else None
    return before if before is not None and before.name.startswith(_PREFIX) and before.is_dir() else _own_place()


@cache
def _own_place() -> Path:
    """Make a directory with a profile that has no credentials: a client can be made with it, and cannot call."""
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    profile = directory / "configs" / "default.json"
    profile.parent.mkdir(mode=0o700)
    profile.write_text(json.dumps({"authentication": {"type": "user_oauth"}}), encoding="utf-8")
    profile.chmod(0o600)  # the SDK refuses one that others may write
    return directory
