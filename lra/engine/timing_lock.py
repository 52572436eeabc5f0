"""One lock per machine: two runs never time at once."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

from lra.core.errors import LraError


class TimingLock:
    """A lock file in the temporary folder. The kernel frees it however its holder ends."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or Path(tempfile.gettempdir()) / "lra-timing.lock"
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
        # The file may be another user's: reading is enough to lock it, and in a shared folder the
        # kernel refuses to open with O_CREAT what somebody else has created.
        try:
            return os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._refused(error) from error
        try:
            return os.open(self._path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> LraError:
        return LraError(
            f"cannot open the timing lock '{self._path}': {error.strerror}; "
            "mend the temporary folder or set TMPDIR to another"
        )
