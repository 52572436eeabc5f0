"""Files by name in a folder or a zip archive, read in the same way.

Names that begin with a dot, and `__MACOSX`, are left out: systems lay them beside files.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import ClassVar

from lra.core.errors import DataError
from tasks.sources.files import existing, ordinary, readable

_DAMAGE = (zipfile.BadZipFile, struct.error, RuntimeError, ValueError)
"""Errors of `zipfile` on an archive that is damaged, locked, or packed in a way it lacks."""


class FileTree(ABC):
    """A file or folder is given by the names on the way to it from the root; empty ones count not,
    and a name may hold several, parted by slashes."""

    packed: ClassVar[bool]
    """Whether it is an archive."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def called(self, *names: str) -> str:
        """Return what errors call a file or folder."""
        return "/".join((str(self.root), *filter(None, names)))

    def last(self, *names: str) -> str:
        """Return a folder's own name, without those on the way to it."""
        return Path(self.root.resolve(), *names).name

    @abstractmethod
    def names(self, *folder: str) -> frozenset[str]:
        """Return the names in a folder; none where there is no such folder."""

    @abstractmethod
    def read(self, *file: str) -> bytes:
        """Return the content of a file that is there; `DataError` where it cannot be read."""


def file_tree(source: str) -> FileTree:
    """Return the files of a folder or a zip; `DataError` where `source` is neither."""
    path = existing(source)
    return _Folder(path) if path.is_dir() else _Zip(path)


class _Folder(FileTree):
    packed = False

    def names(self, *folder: str) -> frozenset[str]:
        path = Path(self.root, *folder)
        with readable(path):
            inside = path.iterdir() if path.is_dir() else ()
            return frozenset(file.name for file in inside if _counts(file.name))

    def read(self, *file: str) -> bytes:
        path = Path(self.root, *file)
        with readable(ordinary(path)):
            return path.read_bytes()


class _Zip(FileTree):
    """Stays open: its list of files is long, and to read it takes a while."""

    packed = True

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        try:
            with readable(root):
                self._zip = zipfile.ZipFile(root)
        except _DAMAGE as error:
            raise DataError(_no_zip(root)) from error
        # Some tools write every name with a dot before it, as they were given the folder.
        self._members = {_plain(member): member for member in self._zip.namelist()}
        self._refuse_repeated()
        self._there: dict[str, set[str]] = {}
        for name in self._members:
            self._enter(name)

    def names(self, *folder: str) -> frozenset[str]:
        return frozenset(filter(_counts, self._there.get("/".join(filter(None, folder)), ())))

    def read(self, *file: str) -> bytes:
        try:
            with readable(self.root):
                return self._zip.read(self._members["/".join(filter(None, file))])
        except (*_DAMAGE, zlib.error, lzma.LZMAError, EOFError) as error:
            raise DataError(
                f"'{self.called(*file)}' is damaged or locked; copy or download the zip again"
            ) from error

    def _refuse_repeated(self) -> None:
        """Refuse names that stand for several files; that of a folder may come again."""
        files = (_plain(member) for member in self._zip.namelist() if not member.endswith("/"))
        times = Counter(name for name in files if all(map(_counts, name.split("/"))))
        twice = [name for name, count in times.items() if count > 1]
        if twice:
            raise DataError(
                f"'{self.root}' holds more than one file of a name, {len(twice)} names in all, the "
                f"first '{twice[0]}'; pack one file of each name"
            )

    def _enter(self, name: str) -> None:
        """Enter a name in its folder, and that in its own, up to one already known."""
        while name:
            folder, _, last = name.rpartition("/")
            known = folder in self._there
            self._there.setdefault(folder, set()).add(last)
            if known:
                return
            name = folder


def _plain(member: str) -> str:
    """A member's name without what leads nowhere: `./a//b/` is a/b."""
    return "/".join(name for name in member.split("/") if name not in ("", "."))


def _counts(name: str) -> bool:
    return not name.startswith(".") and name != "__MACOSX"


def _no_zip(path: Path) -> str:
    with readable(path), path.open("rb") as stream:
        begins = stream.read(4)
    if begins == b"PK\x03\x04":
        return f"'{path}' is a zip archive that is cut short or damaged; copy or download it again"
    if begins[:2] == b"\x1f\x8b":
        return f"'{path}' is a gzip archive; unpack it with tar -xzf {path.name}, give the folder"
    return f"'{path}' is neither a folder nor a zip archive; give one of these"
