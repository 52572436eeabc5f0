"""Folders for temporary files, removed by their owner or else by the next run of the same user.

They lie in the temporary folder, or beside something large that one of them is to become. Anyone
may use such names there, so that a name proves nothing. A folder is ours
by a file in it that its owner has locked. The kernel frees the lock however the owner ends, with
all processes that inherited it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

_PREFIX = "lra-"
_MARK = ".lra-owner"


class TemporaryFolder:
    """A folder of this process and of those that inherit `mark`, created here."""

    def __init__(self, prefix: str = _PREFIX, place: Path | None = None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        # Locked before it gets its name: no other run takes the folder for an abandoned one.
        new = self.path / f"{_MARK}.new"
        self.mark = os.open(new, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        """Descriptor of the lock; once its last copy is closed, the folder is free to be
        removed."""
        fcntl.flock(self.mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(self.path / _MARK)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.mark)


@contextmanager
def temporary_folder(prefix: str = _PREFIX, place: Path | None = None) -> Iterator[Path]:
    """Keep a folder while the context lasts; one that is left by a kill is swept."""
    with closing(TemporaryFolder(prefix, place)) as folder:
        yield folder.path


def sweep(place: Path | None = None) -> None:
    """Remove the folders that killed runs of this user have left in a place, by default the
    temporary folder; never the target of a link."""
    with suppress(OSError), os.scandir(place or tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with suppress(OSError):
                    _sweep(Path(entry.path))


def _sweep(folder: Path) -> None:
    """Remove a folder of ours whose owner is gone; any other stays, with an `OSError` where its
    mark is missing or locked."""
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
