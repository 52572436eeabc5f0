"""Names that a person gave as paths: whether something lies there, whatever the name is."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO, Literal

_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EBADF)


def path_kind(path: str | Path) -> Literal["file", "folder", "other"] | None:
    """Return what lies at a path; None where nothing does, as nothing can at a name that is too
    long or has signs that no name has.

    Raises `OSError` where the system does not let us look.
    """
    try:
        mode = Path(path).stat().st_mode
    except ValueError:
        # A zero byte, or half a pair of surrogates.
        return None
    except OSError as error:
        if error.errno in _NOWHERE:
            return None
        raise
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"


def write(path: Path, data: bytes) -> None:
    """Write a file, made where there is none; raises `OSError`, also for a pipe that has its name:
    it would be waited for."""
    if path_kind(path) == "other":
        raise FileExistsError(errno.EEXIST, f"{path.name} is a pipe or a device", str(path))
    path.write_bytes(data)


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading; a pipe that has its name reads as empty, and is not waited for."""
    return open(path, "rb", opener=_without_waiting)


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)
