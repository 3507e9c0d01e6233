"""Guard off: whoever is named in the lock file holds the lock, be it dead or alive."""

from pytest_hillclimb.errors import LockedError
from pytest_hillclimb.flow.layout import LOCK
from pytest_hillclimb.flow.lock import VariantLock

_acquire = VariantLock.acquire


def acquire(directory):
    if directory.exists(LOCK):
        raise LockedError(f"{directory.shown} is being written by another session")
    return _acquire(directory)


VariantLock.acquire = acquire
