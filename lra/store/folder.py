"""A folder of records: one finished cell is one file, `<hash>.json`, whole or absent, or one line
of a pack.

A record is written under a temporary name, synced and renamed, so that a reader or a rerun never
sees half of one, even where the writer is killed. It is always written to a file of its own, which
overrides a pack's record of the same cell. One run at a time writes to a store; readers need no
lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from lra.core.errors import StoreError, UsageError, is_full, system_reason
from lra.core.hashing import DIGITS
from lra.core.paths import opened, path_kind
from lra.core.records import Record, encode
from lra.store.atomic import write_atomically
from lra.store.packs import KIND, SUFFIX, Contents, Packs
from lra.store.unreadable import OtherVersion, Unreadable, parse_record, warn_of_unreadable

_ID = f"[0-9a-f]{{{DIGITS}}}"
_HALF_RECORD = re.compile(rf"({_ID}\.json|{KIND}{re.escape(SUFFIX)})\.\d+\.tmp")
"""Half a record, or half a pack."""
_HALF_CHECKPOINT = re.compile(rf"({_ID}\.pt)?\.[0-9a-f]{{32}}\.tmp|{_ID}\.pt\.tmp")
"""Half a checkpoint, also under the names of older versions, and the file with which a worker tests
whether it may write here."""

_TOKEN = re.compile(r"\.cluster-[0-9a-f]{32}")
"""File by which the workers of a run recognise the store."""
_TOKEN_LASTS = 7 * 24 * 3600.0
"""Seconds after which a token is that of a dead run: a live one may wait for days in a queue."""


class Store:
    """A folder of records. Creating the object touches nothing on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._packs = Packs(path)

    def exists(self) -> bool:
        """Return whether there is such a folder.

        Raises `StoreError` where permissions hide it, or a folder above it.
        """
        try:
            # Asks for a file in it, too: a folder may be visible and yet closed.
            return path_kind(self.path / ".lock") is not None or path_kind(self.path) == "folder"
        except OSError as error:
            raise StoreError(
                f"cannot read the store '{self.path}': {system_reason(error)}; "
                "mend its permissions or choose another --store"
            ) from error

    def existing(self) -> Store:
        """Return the store; raises `UsageError` where there is no such folder."""
        if not self.exists():
            raise UsageError(
                f"no store at '{self.path}'; run cells first, or name a folder of records"
            )
        return self

    def load(self, id: str) -> Record | None:
        """Return the record of a cell; None where there is none, or it cannot be read."""
        found = _read(self._file(id), id)
        if found is None:
            packed = self.packed()
            packed.warn_of_disputed(id)
            if id not in packed.lines:
                # A pack may have held it.
                packed.warn_of_lost()
                return None
            found = packed.lines[id].record(id)
        if isinstance(found, Unreadable):
            found.warn()
            return None
        return found

    def refuse_newer(self, ids: Iterable[str]) -> None:
        """Raise `StoreError` where a cell has a record of a newer version: this version cannot read
        it and would overwrite it."""
        found = map(self._find, ids)
        newer = [one.name for one in found if isinstance(one, OtherVersion) and one.newer]
        if newer:
            those = f"{len(newer)} cells have records" if len(newer) > 1 else "a cell has a record"
            raise StoreError(
                f"the store '{self.path}': {those} of a newer version, e.g. {newer[0]}, which "
                "would be overwritten; update this installation or choose another --store"
            )

    def records(self) -> list[Record]:
        """Return all readable records, loose and packed, in the order of their ids.

        A record that cannot be read is left out with a `StoreWarning`; all of another schema share
        one. A store that was never written to is empty.
        """
        read = ((id, _read(file, id)) for id, file in self.loose().items())
        found = {id: one for id, one in read if one is not None}
        # Packs are read last: they have records that were packed meanwhile.
        packed = self.packed()
        hidden = found.keys() & packed.lines.keys()
        found |= {id: line.record(id) for id, line in packed.lines.items() if id not in hidden}
        ordered = [found[id] for id in sorted(found)]
        warn_of_unreadable(one for one in ordered if isinstance(one, Unreadable))
        packed.warn_of_lost()
        for id in sorted(packed.disputed.keys() - hidden):
            packed.warn_of_disputed(id)
        return [one for one in ordered if isinstance(one, Record)]

    def loose(self) -> dict[str, Path]:
        """Return the files of single records, readable or not, by the ids in their names.

        Raises `StoreError` where the folder cannot be read.
        """
        try:
            files = {file.name: file for file in self.path.iterdir()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(
                f"cannot read the store '{self.path}': {system_reason(error)}; give a folder as "
                "--store"
            ) from error
        # A leading dot or any other ending (lock, temporary names, checkpoints) is no record.
        return {
            name.removesuffix(".json"): file
            for name, file in sorted(files.items())
            if name.endswith(".json") and not name.startswith(".")
        }

    def packed(self) -> Contents:
        """Return the content of the folder's packs; raises `StoreError` as `loose` does."""
        return self._packs.contents()

    def checkpoint(self, id: str) -> Path:
        """Return the path of a training cell's checkpoint."""
        return self.path / "checkpoints" / f"{id}.pt"

    def save(self, record: Record) -> None:
        """Write a record, whole and on the disk when this returns."""
        file = self._file(record.id)
        try:
            write_atomically(file, encode(record))
        except OSError as error:
            raise StoreError(
                f"cannot write {file.name} to the store '{self.path}': {system_reason(error)}; "
                "make room or choose another --store, then run the same command again"
            ) from error

    @contextmanager
    def locked(self) -> Iterator[Store]:
        """Hold the store for one run: make the folder, lock it, remove the leftovers of dead
        writers.

        Raises `StoreError` when it cannot be written or another run holds it.
        """
        try:
            self.checkpoint("").parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered in Python: a full disk must not raise a second time on closing.
            lock = (self.path / ".lock").open("a+b", buffering=0)
        except OSError as error:
            raise self._refused(error) from error
        with lock:
            self._take(lock)
            try:
                lock.truncate(0)
                lock.write(b"%d\n" % os.getpid())
                self._sweep()
            except OSError as error:
                raise self._refused(error) from error
            yield self

    def _refused(self, error: OSError) -> StoreError:
        """Return the error of a store that cannot be held for writing."""
        file = f" {Path(error.filename).name}" if error.filename else " .lock"
        # The store itself, or a folder above it, is no folder.
        file = "" if error.errno == errno.ENOTDIR else file
        return StoreError(
            f"cannot write{file} to the store '{self.path}': {system_reason(error)}; choose "
            f"another --store or {'make room' if is_full(error) else 'mend its permissions'}"
        )

    def _sweep(self) -> None:
        """Delete the leftovers of dead writers of ours; files of other names stay."""
        checkpoints = self.checkpoint("").parent
        for folder, half in ((self.path, _HALF_RECORD), (checkpoints, _HALF_CHECKPOINT)):
            for file in folder.glob("*.tmp"):
                if half.fullmatch(file.name):
                    file.unlink(missing_ok=True)
        for file in self.path.glob(".cluster-*"):
            if _TOKEN.fullmatch(file.name) and time.time() - file.stat().st_mtime > _TOKEN_LASTS:
                file.unlink(missing_ok=True)

    def _take(self, lock: FileIO) -> None:
        """Lock the store, for as long as the file is open."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise StoreError(
                    f"the store '{self.path}' is on a file system without locks "
                    f"({system_reason(error)}); choose a --store on a local disk"
                ) from error
            lock.seek(0)
            holder = lock.read().decode(errors="replace").strip()
            raise StoreError(
                f"the store '{self.path}' is in use by another run"
                f"{f' (process {holder})' if holder else ''}; "
                "wait for it to end or choose another --store"
            ) from error

    def _find(self, id: str) -> Record | Unreadable | None:
        """Return the record of a cell, loose or else packed, or why it cannot be used."""
        found = _read(self._file(id), id)
        if found is None and (line := self.packed().lines.get(id)) is not None:
            return line.record(id)
        return found

    def _file(self, id: str) -> Path:
        return self.path / f"{id}.json"


def _read(file: Path, id: str) -> Record | Unreadable | None:
    """Return the record, or why it cannot be used; None where there is no file."""
    try:
        with opened(file) as stream:
            data = stream.read() or b""
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        return Unreadable(file.name, "it is a folder", "move it out of the store")
    except OSError as error:
        return Unreadable(file.name, system_reason(error), "mend its permissions")
    remedy = "delete it and run its cell again"
    if not re.fullmatch(_ID, id):
        remedy = "no record of a run has such a name: move it out of the store"
    return parse_record(data, id, lambda: file.name, remedy)
