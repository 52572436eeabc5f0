"""Packs: many records in one file, a line of JSON each, sorted by id and compressed.

`<kind>.jsonl.gz` has the records of one kind of cell. A record has its kind and not its suite, so
that the name follows from the record alone, and files are few. Each line is the record's own file
without its white space.
"""

# Why gzip, of the 2,643 records of the reference (13.4 MB of loose files, 10.4 MB of lines):
#   gzip  1.7 MB, 0.03 CPU seconds to decompress;  xz  1.2 MB, 0.07;  plain  10.4 MB.
# To decode the lines takes 0.05, and to read the loose files 0.10 in all: with xz packs would be
# the slower way to read.

from __future__ import annotations

import gzip
import io
import os
import time
import warnings
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from lra.core.errors import StoreError, system_reason
from lra.core.escape import escape_controls
from lra.core.paths import opened
from lra.core.records import Record
from lra.store.unreadable import (
    IDENTITY_DECODER,
    NOT_OURS,
    StoredIdentity,
    StoreWarning,
    Unreadable,
    parse_record,
    warn_of_unreadable,
    why_unreadable,
)

SUFFIX = ".jsonl.gz"
KIND = "[a-z][a-z0-9_-]*"
"""Kind of a cell, the first part of a pack's name."""
_RESTORE = "restore the pack, or run its cell again"
_PIECE = 2**16
"""Bytes that are decompressed at once."""
_COARSE_NS = 2_000_000_000
"""Resolution of a file system's times, at worst: two changes this close may have the same time."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """A record in a pack, not yet decoded."""

    file: Path
    number: int
    data: bytes
    written: StoredIdentity

    @property
    def place(self) -> str:
        """Place of the line in words."""
        return _place(self.file, self.number)

    def record(self, id: str) -> Record | Unreadable:
        """Return the record, or why it cannot be used."""
        return parse_record(self.data, id, lambda: f"{id} in {self.place}", _RESTORE, self.written)


class Contents(msgspec.Struct, frozen=True):
    """Content of all packs of a folder."""

    files: tuple[Path, ...] = ()
    lines: dict[str, Line] = {}
    """Lines by the ids of their records."""
    nameless: tuple[Unreadable, ...] = ()
    """Lines without a readable id."""
    damaged: tuple[str, ...] = ()
    """Sentences about packs that end too early."""
    faulty: tuple[Path, ...] = ()
    """Packs with such lines, or that end too early."""
    disputed: dict[str, str] = {}
    """Sentence on how two lines of one id differ, by id."""

    def warn_of_lost(self) -> None:
        """Warn of lines without a readable id, and of damaged packs."""
        warn_of_unreadable(self.nameless)
        for sentence in self.damaged:
            warnings.warn(escape_controls(sentence), StoreWarning, stacklevel=2)

    def warn_of_disputed(self, id: str) -> None:
        """Warn where the record of this id may be the wrong one."""
        if id in self.disputed:
            warnings.warn(escape_controls(self.disputed[id]), StoreWarning, stacklevel=2)


class Packs:
    """The packs of one folder, read again only where a file or the folder has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._listed: list[Path] = []
        self._listed_at: int | None = None
        self._stamps: dict[Path, tuple[int, ...]] = {}
        self._contents = Contents()

    def contents(self) -> Contents:
        """Return the content of the packs now; raises `StoreError` where the folder cannot be
        read."""
        stamps = self._now()
        # Read again where one was replaced meanwhile: its records may be in another by now.
        while stamps != self._stamps:
            self._contents, self._stamps = _read(stamps), stamps
            stamps = self._now()
        return self._contents

    def _now(self) -> dict[Path, tuple[int, ...]]:
        """Stamps that change with the packs."""
        try:
            stamps = {file: _stamp(file) for file in self._files()}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise StoreError(
                f"cannot read the store '{self._folder}': {system_reason(error)}; "
                "mend its permissions or choose another --store"
            ) from error
        return {file: stamp for file, stamp in stamps.items() if stamp}

    def _files(self) -> list[Path]:
        """Packs in the order of their names; the listing of a folder of thousands of records is
        reused while the folder is unchanged."""
        changed = self._folder.stat().st_mtime_ns
        if changed != self._listed_at:
            now = time.time_ns()
            with os.scandir(self._folder) as found:
                names = sorted(one.name for one in found if is_pack(one.name))
            self._listed = [self._folder / name for name in names]
            self._listed_at = changed if now - changed > _COARSE_NS else None
        return self._listed


def is_pack(name: str) -> bool:
    """Whether a file of this name is a pack; one with a leading dot is somebody's own."""
    return name.endswith(SUFFIX) and not name.startswith(".")


def compress_lines(lines: Iterable[bytes]) -> bytes:
    """Return the bytes of a pack of these lines; the same lines give the same bytes."""
    # 31 asks for a gzip header, which has neither a name nor a time here.
    return zlib.compress(b"".join(line + b"\n" for line in lines), 9, wbits=31)


def _place(file: Path, number: int) -> str:
    return f"line {number} of {file.name}"


def _stamp(file: Path) -> tuple[int, ...]:
    """Stamp that differs where a file does; empty where the file is gone."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _read(files: Iterable[Path]) -> Contents:
    """Read the lines by id, the first of two with one id, in the order of the packs' names."""
    lines: dict[str, Line] = {}
    disputed: dict[str, str] = {}
    nameless: list[Unreadable] = []
    damaged: list[str] = []
    faulty: list[Path] = []
    for file in files:
        found, damage = _decompress_lines(file)
        for number, data in enumerate(found, 1):
            try:
                written = IDENTITY_DECODER.decode(data)
            except NOT_OURS as error:
                faulty.append(file)
                place = _place(file, number)
                nameless.append(why_unreadable(data, error, f"in {place}", _RESTORE))
                continue
            id, line = written.id, Line(file, number, data, written)
            first = lines.setdefault(id, line)
            if first is not line and not _are_equal(first, line):
                disputed[id] = (
                    f"record {id} is there twice and differs: {first.place} counts, {line.place} "
                    "does not; take the wrong pack away"
                )
        if damage is not None:
            faulty.append(file)
            damaged.append(
                f"all records of {file.name} after line {len(found)} are left out: {damage}; "
                "restore the pack, or run their cells again"
            )
    return Contents(tuple(files), lines, tuple(nameless), tuple(damaged), tuple(faulty), disputed)


def _decompress_lines(file: Path) -> tuple[list[bytes], str | None]:
    """Yield the lines of a pack up to its end, or up to its damage and the reason."""
    lines: list[bytes] = []
    try:
        with (
            suppress(EOFError, zlib.error, gzip.BadGzipFile),
            opened(file) as raw,
            gzip.open(raw) as stream,
        ):
            # In large pieces, which takes a seventh less time; in a damaged one all lines would be
            # lost.
            if lines := [*io.BufferedReader(stream, _PIECE)]:
                return lines, None
        with opened(file) as raw, gzip.open(raw) as stream:
            # One by one, to keep those before the damage.
            for line in stream:
                lines.append(line)
    except EOFError:
        return lines, "it is cut off"
    except (gzip.BadGzipFile, zlib.error) as error:
        return lines, f"it is damaged ({error})"
    except OSError as error:
        return lines, system_reason(error)
    return lines, None if lines else "it is empty"


def _are_equal(one: Line, other: Line) -> bool:
    """Whether two lines of one id have the same content; one that cannot be read equals none."""
    try:
        said, otherwise = (msgspec.json.decode(line.data, type=object) for line in (one, other))
    except NOT_OURS:
        return False
    return said == otherwise
