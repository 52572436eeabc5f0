"""One lock per machine: two runs never time at once."""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from lra.core.errors import LraError

_NAME = "lra-timing.lock"


class TimingLock:
    """A lock file in /tmp, the same for every user. The kernel frees it however its holder ends.

    Where /tmp cannot be used the file lies in Python's temporary folder, which TMPDIR may move.
    Containers with a /tmp of their own have a lock of their own.
    """

    def __init__(self, path: Path | None = None) -> None:
        shared, own = Path("/tmp", _NAME), Path(tempfile.gettempdir(), _NAME)
        self._paths = [path] if path else list(dict.fromkeys((shared, own)))
        self._descriptor: int | None = None
        self.news = False
        """Whether the last `acquire` was the first of several in vain."""
        self._in_vain = False

    def acquire(self) -> bool:
        """Take the lock if it is free, and return whether it is held now; never waits."""
        if self._descriptor is not None:
            return True
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            self.news, self._in_vain = not self._in_vain, True
            return False
        self._descriptor, self.news, self._in_vain = descriptor, False, False
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        *first, last = self._paths
        for path in first:
            with suppress(OSError):
                return self._open_at(path)
        try:
            return self._open_at(last)
        except OSError as error:
            raise LraError(
                f"cannot open the timing lock '{last}': {error.strerror}; "
                "mend the temporary folder or set TMPDIR to another"
            ) from error

    def _open_at(self, path: Path) -> int:
        # The file may be another user's: reading is enough to lock it, and in a shared folder the
        # kernel refuses to open with O_CREAT what somebody else has created.
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        # Readable to others, whatever this user's umask.
        with suppress(PermissionError):
            os.fchmod(descriptor, 0o644)
        return descriptor
