"""One lock per machine, first come, first served: two runs never time at once."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from lra.core.errors import LraError

_NAME = "lra-timing.lock"
TOLD_EVERY = 60.0
"""Seconds after which the wait for other timings is reported again."""
IDLE = 5.0
"""Seconds that the lock may lie free before the first in line, perhaps suspended, is passed
over."""
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
}
_RANGE = struct.Struct("hhqqi4x")
"""`struct flock`: kind, whence, start, length and process of a lock on a range of bytes."""
_HELD = 1 << 62
"""First byte of the range that tells since when the lock is held; bytes before it are tickets. Both
count nanoseconds of the machine's monotonic clock, and none is ever written."""


class TimingLock:
    """A lock file in /tmp, the same for every user. The kernel frees it however its holder ends.

    The lock itself is `flock`'s. A ticket is a read lock on one byte of the file, numbered by the
    moment when its owner began to wait. A run waits while there is an earlier ticket; a dead
    owner's is gone. No byte of the file is read or written. Where the system has no such locks, as
    outside Linux, nobody is first.

    Where /tmp cannot be used the file lies in Python's temporary folder, which TMPDIR may move.
    Containers with a /tmp of their own have a lock of their own.
    """

    def __init__(self, path: Path | None = None) -> None:
        shared, own = Path("/tmp", _NAME), Path(tempfile.gettempdir(), _NAME)
        self._paths = [path] if path else list(dict.fromkeys((shared, own)))
        self._path = self._paths[-1]
        self._descriptor: int | None = None
        self._held = False
        self._ticket = 0
        """Place in the order; 0 before the first `acquire`."""
        self._queues = False
        """Whether others see the ticket."""
        self._since = self._told_at = self._idle_since = 0.0
        self.news = ""
        """Words for the run that the last `acquire` in vain waits for; empty where they were
        reported lately."""

    def acquire(self) -> bool:
        """Take the lock if it is free and nobody has waited longer; return whether it is held now.
        Never waits."""
        if self._held:
            return True
        descriptor = self._queue()
        has_its_turn = self._has_its_turn(descriptor)
        if not has_its_turn or not _flock(descriptor):
            self._tell(descriptor, is_held=has_its_turn)
            return False
        if not self._is_current(descriptor):
            # Somebody removed the file, and later runs see another.
            self._close()
            return self.acquire()
        now = time.monotonic_ns()
        _range_lock(descriptor, fcntl.F_RDLCK, _HELD + now)
        _range_lock(descriptor, fcntl.F_UNLCK, self._ticket)
        self._held, self._ticket, self._queues = True, 0, False
        self.news = ""
        return True

    def yield_turn(self) -> None:
        """Let others go first while this run could not use the lock; it keeps its place."""
        if not self._held:
            self._close()

    def release(self) -> None:
        """Give back the lock, or the place in line."""
        self._close()
        self._ticket, self.news = 0, ""

    @property
    def waited(self) -> float:
        """Seconds since the run began to wait, or to wait again after it stepped aside."""
        return time.monotonic() - self._since if self._queues else 0.0

    @property
    def is_contended(self) -> bool:
        """Whether another run holds the lock or waits for it; False where the system has `flock`
        alone."""
        if self._descriptor is None:
            descriptor = self._open()
            try:
                return _next_locked_byte(descriptor, 0, 0) is not None
            finally:
                os.close(descriptor)
        return _next_locked_byte(self._descriptor, 0, 0) is not None

    def _queue(self) -> int:
        """Open the file and take a ticket, once."""
        if self._descriptor is None:
            self._descriptor = self._open()
        if not self._queues:
            self._ticket = self._ticket or time.monotonic_ns()
            _range_lock(self._descriptor, fcntl.F_RDLCK, self._ticket)
            self._queues, self._since = True, time.monotonic()
            self._idle_since = self._since
        return self._descriptor

    def _has_its_turn(self, descriptor: int) -> bool:
        if _next_locked_byte(descriptor, 0, self._ticket) is None:
            return True
        now = time.monotonic()
        if _next_locked_byte(descriptor, _HELD, 0) is not None:
            self._idle_since = now
        return now - self._idle_since > IDLE

    def _is_current(self, descriptor: int) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.fstat(descriptor), os.lstat(self._path))
        return False

    def _tell(self, descriptor: int, *, is_held: bool) -> None:
        now = time.monotonic()
        self.news = ""
        if self._told_at and now - self._told_at < TOLD_EVERY:
            return
        known = list(_holder(descriptor))
        waited = (time.monotonic_ns() - self._ticket) / 1e9
        if waited >= 1.0:
            known.append(f"waited {waited:.0f} s so far")
        if known or is_held:
            # Else it is passing from one run to another, and its holder is known in a moment.
            self._told_at = now
            self.news = ", ".join(["another run's timing on this machine", *known])

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._held, self._queues = None, False, False

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
        # The file may be another user's: reading is enough to lock it.
        try:
            _check_safe(path, path.lstat())
            descriptor = os.open(path, _FLAGS)
        except FileNotFoundError:
            try:
                descriptor = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o644)
            except FileExistsError:
                # Another run was quicker.
                return self._open_at(path)
            # Readable to others, whatever this user's umask.
            os.fchmod(descriptor, 0o644)
        except OSError as error:
            if error.errno == errno.ELOOP:
                _refuse(path, "a link")
            raise
        try:
            _check_safe(path, os.fstat(descriptor))
        except LraError:
            os.close(descriptor)
            raise
        self._path = path
        return descriptor


def _check_safe(path: Path, found: os.stat_result) -> None:
    """Raise `LraError` for a path that is no file, or that may be another's tomorrow."""
    if not stat.S_ISREG(found.st_mode):
        _refuse(path, _KINDS.get(stat.S_IFMT(found.st_mode), "a device"))
    ours = found.st_uid in (0, os.geteuid()) or found.st_gid in (os.getegid(), *os.getgroups())
    if not ours and not path.parent.stat().st_mode & stat.S_ISVTX:
        _refuse(path, f"a file of user {found.st_uid}, in a folder where others may replace it")


def _refuse(path: Path, what: str) -> NoReturn:
    raise LraError(
        f"the timing lock '{path}' is {what}; remove it, or have its owner remove it, and run the "
        "same command again"
    )


def _flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _range_lock(descriptor: int, kind: int, start: int) -> None:
    """Lock or unlock one byte for the open file description; read permission is enough."""
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _RANGE.pack(kind, os.SEEK_SET, start, 1, 0))


def _next_locked_byte(descriptor: int, start: int, length: int) -> int | None:
    """Return a byte that somebody else has locked, among `length` bytes or, for 0, all that
    follow."""
    if sys.platform == "linux":
        asked = _RANGE.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        with suppress(OSError):
            kind, _, found, _, _ = _RANGE.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
            return None if kind == fcntl.F_UNLCK else int(found)
    return None


def _holder(descriptor: int) -> Iterator[str]:
    """Words for the lock's holder, by the kernel's account."""
    status = os.fstat(descriptor)
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            # 1: FLOCK  ADVISORY  WRITE 4242 fe:00:2146613 0 EOF
            match line.split():
                case [_, "FLOCK", _, "WRITE", pid, where, *_] if where == place:
                    yield f"process {pid}"
    since = _next_locked_byte(descriptor, _HELD, 0)
    if since is not None:
        yield f"begun {(time.monotonic_ns() - since + _HELD) / 1e9:.0f} s ago"
