"""Files and directories of a flow, reached through open descriptors and never through a link.

Pattern: a ``SafeDir`` holds the descriptor of an open directory. A child is named by one path component, opened
relative to that descriptor without following links, and looked at (regular file, a single link) through the descriptor
that was just opened. What was checked is therefore what is read or written, whatever happens to the path meanwhile.

Accepted trade-offs: a directory that is moved away while it is held keeps receiving writes (``FlowDir.moved`` tells);
``replace`` renames over a name that it has checked a moment before, which loses a file put there in between but never
follows a link; on macOS ``fsync`` reaches the drive, not the platters.

Scope: POSIX systems with ``openat`` and its kin (Linux, macOS). Elsewhere a flow is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import BinaryIO, Literal, Self

from pytest_hillclimb.errors import RefusedError, UnsafePathError

SUPPORTED = {os.open, os.mkdir, os.stat, os.rename, os.unlink} <= os.supports_dir_fd
"""Whether the system can reach files relative to an open directory."""

DIRECTORY: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
"""Flags that open a directory, and nothing else."""

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFREG: "a file",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}


class SafeDir:
    """An open directory: the descriptor that everything below is bound to, and the path to show for it.

    :param fd: descriptor of the directory; the object owns it from now on
    :param shown: path for messages
    """

    def __init__(self, fd: int, shown: str) -> None:
        self.fd = fd
        self.shown = shown

    def path_of(self, name: str) -> str:
        """Return the path to show for the child *name*."""
        return os.path.join(self.shown, name)

    def open_dir(self, name: str) -> SafeDir | None:
        """Return the directory *name*, or None when there is nothing of that name.

        :raises UnsafePathError: if it is a link or no directory
        """
        _require_component(name, self.shown)
        try:
            fd = os.open(name, DIRECTORY | _NOFOLLOW, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        except OSError:
            self._refuse_unless(name, "directory")
            raise
        return SafeDir(fd, self.path_of(name))

    def make_dir(self, name: str) -> SafeDir:
        """Return the directory *name*, made with mode 0755 when absent.

        :raises UnsafePathError: if it is a link or no directory
        """
        found = self.open_dir(name)
        while found is None:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=self.fd)
            found = self.open_dir(name)
        return found

    def open_file(self, name: str, flags: int) -> int:
        """Return a descriptor of the regular file *name*; a created one has mode 0644.

        :param flags: flags of ``os.open`` other than ``O_TRUNC``, which would empty a file before it was looked at
        :raises UnsafePathError: if it is a link, has a second hard link, or is no regular file
        """
        _require_component(name, self.shown)
        try:
            # Without O_NONBLOCK a planted FIFO would hold the open until somebody opens its other end.
            fd = os.open(name, flags | _NOFOLLOW | _NONBLOCK, 0o644, dir_fd=self.fd)
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError:
            self._refuse_unless(name, "file")
            raise
        try:
            _refuse_unless(os.fstat(fd), "file", self.path_of(name))
        except BaseException:
            os.close(fd)
            raise
        return fd

    def reader(self, name: str) -> BinaryIO | None:
        """Return the file *name* open for reading, or None when absent; errors as in :meth:`open_file`."""
        try:
            return open(self.open_file(name, os.O_RDONLY), "rb")
        except FileNotFoundError:
            return None

    def read(self, name: str) -> bytes | None:
        """Return the bytes of the file *name*, or None when absent; errors as in :meth:`open_file`."""
        file = self.reader(name)
        if file is None:
            return None
        with file:
            return file.read()

    def create(self, name: str, data: bytes) -> None:
        """Write a new file; nothing is left of it when that fails.

        :raises FileExistsError: if the name is taken, be it by a dangling link
        """
        fd = self.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with _closing(fd):
                write_all(fd, data)
        except BaseException:
            self._discard(name)
            raise

    def overwrite(self, name: str, data: bytes) -> None:
        """Write a file in place, emptied only after it was looked at; errors as in :meth:`open_file`."""
        with _closing(self.open_file(name, os.O_WRONLY | os.O_CREAT)) as fd:
            os.ftruncate(fd, 0)
            write_all(fd, data)

    def replace(self, name: str, data: bytes, *, sync: bool = True) -> None:
        """Write a file so that readers, also after a crash, find the old bytes or the new ones and nothing between.

        :param sync: whether that holds after a power cut too, at the cost of waiting for the disk
        :raises UnsafePathError: if what is there now is no regular file with a single link
        """
        old = self.check(name)
        temporary = f".{name}.{os.urandom(4).hex()}.tmp"
        fd = self.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with _closing(fd):
                if old is not None:
                    os.fchmod(fd, stat.S_IMODE(old.st_mode))
                write_all(fd, data)
                if sync:
                    os.fsync(fd)
            os.replace(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except BaseException:
            self._discard(temporary)
            raise

    def remove(self, name: str) -> None:
        """Remove a file, or the link that stands in its place; nothing happens if there is none.

        :raises OSError: if it cannot be removed
        """
        if self.exists(name):
            os.unlink(name, dir_fd=self.fd)

    def exists(self, name: str) -> bool:
        """Return whether there is anything of that name, a dangling link included."""
        return self._look(name) is not None

    def check(self, name: str) -> os.stat_result | None:
        """Return the status of the file *name*, or None when absent.

        :raises UnsafePathError: if it is a link, has a second hard link, or is no regular file
        """
        return self._refuse_unless(name, "file")

    def close(self) -> None:
        """Close the descriptor; closing twice is harmless."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _look(self, name: str) -> os.stat_result | None:
        _require_component(name, self.shown)
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _discard(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(name, dir_fd=self.fd)

    def _refuse_unless(self, name: str, wanted: Literal["file", "directory"]) -> os.stat_result | None:
        status = self._look(name)
        if status is not None:
            _refuse_unless(status, wanted, self.path_of(name))
        return status


@contextmanager
def refused(what: str, kind: type[RefusedError] = RefusedError) -> Iterator[None]:
    """Turn an ``OSError`` of the block into a refusal that says *what* could not be done, and why.

    :raises RefusedError: or the given *kind* of it
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror or error}") from error


def write_all(fd: int, data: bytes) -> None:
    """Write every byte of *data*; one write may take only some of them."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


@contextmanager
def _closing(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


def _require_component(name: str, shown: str) -> None:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise UnsafePathError(f"{name!r} cannot name a file or directory in {shown or '.'}", path=name)


def _refuse_unless(status: os.stat_result, wanted: Literal["file", "directory"], shown: str) -> None:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a device")
    if kind != f"a {wanted}":
        text = f"{shown} is {kind} where the flow needs a {wanted} of its own; remove it, or put a copy in its place"
        raise UnsafePathError(text, path=shown, problem=kind)
    # No links at all means that it was deleted just now, which may as well have happened after this look.
    if wanted == "file" and status.st_nlink > 1:
        text = f"{shown} has a second hard link (another name for the same file); replace it with a plain copy"
        raise UnsafePathError(text, path=shown, problem="a hard link")
