"""Guard off: several sessions may write a variant at once."""

from pytest_hillclimb.flow.lock import VariantLock


class NoLock:
    def release(self):
        pass


VariantLock.acquire = classmethod(lambda cls, directory: NoLock())
