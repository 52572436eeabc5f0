"""Paths from the command line: what kind of thing lies there, whatever the name."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO, Literal

_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EBADF)


def path_kind(path: str | Path) -> Literal["file", "folder", "other"] | None:
    """Return the kind of thing at a path; None where there is nothing, or the name is impossible:
    too long, or with characters that no name has.

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


def real_path(path: Path) -> Path:
    """Return the absolute path without links; a link that leads back to itself stays, for which
    `Path.resolve` raises an error."""
    return Path(os.path.realpath(path))


def write(path: Path, data: bytes) -> None:
    """Write a file, made where there is none. Raises `OSError`, also where the name is a pipe's:
    writing would wait."""
    if path_kind(path) == "other":
        raise FileExistsError(errno.EEXIST, f"{path.name} is a pipe or a device", str(path))
    path.write_bytes(data)


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading; a pipe of that name reads as empty, and is not waited for."""
    return open(path, "rb", opener=_without_waiting)


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)
