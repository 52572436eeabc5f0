"""Kinds of things that may lie where a file of data is expected."""

from __future__ import annotations

import errno
import stat
from pathlib import Path
from typing import Literal

FileKind = Literal["file", "folder", "pipe", "socket", "device", "dead link", "loop", "nothing"]

CALLED: dict[FileKind, str] = {
    "file": "a file",
    "folder": "a folder",
    "pipe": "a pipe",
    "socket": "a socket",
    "device": "a device",
    "dead link": "a link to nothing",
    "loop": "a link that leads back to itself",
    "nothing": "nothing",
}
"""Each kind as errors call it."""

_OF_MODE: dict[int, FileKind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def file_kind(path: Path) -> FileKind:
    """Return what lies at a path, or where the link there leads.

    Raises `OSError` where the system does not let us look.
    """
    try:
        return _OF_MODE[stat.S_IFMT(path.stat().st_mode)]
    except ValueError:
        # A zero byte, or half a pair of surrogates: no name has these.
        return "nothing"
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            return "loop"
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
        return "dead link" if path.is_symlink() else "nothing"
