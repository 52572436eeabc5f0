"""Folders for temporary files, which end with their owner or else with the next run of its user.

Their names are of all who use the temporary folder, and so prove nothing. A folder is ours by a
file in it that its owner has locked: the kernel frees it however the owner ends, with all that has
inherited it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "lra-"
_MARK = ".lra-owner"


class TemporaryFolder:
    """A folder of this process, and of whoever inherits `mark`; made here."""

    def __init__(self, prefix: str = _PREFIX) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        # Locked before it has its name: without that nobody takes the folder for one of ours.
        new = self.path / f"{_MARK}.new"
        self.mark = os.open(new, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        """Descriptor whose last copy, closed, gives the folder away."""
        fcntl.flock(self.mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(self.path / _MARK)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.mark)


def sweep() -> None:
    """Remove what runs of this user have left in the temporary folder, killed with all that was
    theirs; never what a link points to."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with suppress(OSError):
                    _sweep(Path(entry.path))


def _sweep(folder: Path) -> None:
    """Remove a folder that is ours and whose owner is gone; raises `OSError` for any other."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    mark = os.open(folder / _MARK, flags)
    try:
        found = os.fstat(mark)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(mark)
