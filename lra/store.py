"""The store: one finished cell is one file, `<hash>.json`, whole or absent.

A record is written to a temporary name, synced and renamed, so that a reader or a rerun never sees
half of one, whatever kills the writer. One run at a time writes to a store; readers need no lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from lra.core.errors import StoreError, UsageError, reason
from lra.core.hashing import DIGITS
from lra.core.records import SCHEMA, Record, decode, encode

_ID = f"[0-9a-f]{{{DIGITS}}}"
_HALF_RECORD = re.compile(rf"{_ID}\.json\.\d+\.tmp")
_HALF_CHECKPOINT = re.compile(rf"({_ID}\.pt)?\.[0-9a-f]{{32}}\.tmp|{_ID}\.pt\.tmp")
"""Of a checkpoint, also as older versions named it, and of a worker that tries whether it may write
here."""


class StoreWarning(UserWarning):
    """A record that cannot be used; names its file and says what to do."""


class _Schema(msgspec.Struct):
    schema: int | None = None


class _Unreadable(msgspec.Struct, frozen=True):
    """Why a file is no record to use, and what to do."""

    file: Path
    what: str
    remedy: str

    def warn(self, more: int = 0) -> None:
        """Say so in one line, of so many other files too."""
        name = self.file.name
        which = f"records {name} and {more} more are" if more else f"record {name} is"
        warnings.warn(f"{which} left out: {self.what}; {self.remedy}", StoreWarning, stacklevel=2)


class _OfAnotherVersion(_Unreadable, frozen=True):
    """Of a whole store there is nothing to say of each file."""

    newer: bool


class Store:
    """A folder of records. Creating the object touches nothing on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def present(self) -> bool:
        """Return whether there is such a folder.

        Raises `StoreError` where one may not look into it, or into one above it.
        """
        try:
            # A file in it is asked for, too: a folder may be seen and yet closed.
            return (self.path / ".lock").exists() or self.path.is_dir()
        except OSError as error:
            raise StoreError(
                f"cannot read the store '{self.path}': {reason(error)}; "
                "mend its permissions or choose another --store"
            ) from error

    def there(self) -> Store:
        """Return the store; raises `UsageError` where there is no such folder."""
        if not self.present():
            raise UsageError(
                f"no store at '{self.path}'; run cells first, or name a folder of records"
            )
        return self

    def load(self, id: str) -> Record | None:
        """Return the record of a cell; None where there is none, or none that can be read."""
        found = _read(self._file(id))
        if isinstance(found, _Unreadable):
            found.warn()
            return None
        return found

    def refuse_newer(self, ids: Iterable[str]) -> None:
        """Raise `StoreError` where a cell has a record that a newer version wrote: this one cannot
        read it and would write over it."""
        found = {id: _read(self._file(id)) for id in ids}
        newer = [
            id for id, one in found.items() if isinstance(one, _OfAnotherVersion) and one.newer
        ]
        if newer:
            those = f"{len(newer)} cells have records" if len(newer) > 1 else "a cell has a record"
            raise StoreError(
                f"the store '{self.path}': {those} of a newer version, e.g. {newer[0]}.json, which "
                "would be overwritten; update this installation or choose another --store"
            )

    def records(self) -> list[Record]:
        """Return all readable records in the order of their names.

        Each file that cannot be read gives one `StoreWarning` and is left out; those of another
        schema together give one. A store that was never written to is empty.
        """
        try:
            files = sorted(self.path.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(
                f"cannot read the store '{self.path}': {reason(error)}; give a folder as --store"
            ) from error
        # A leading dot or any other ending (lock, temporary names, checkpoints) is no record.
        found = [_read(f) for f in files if f.suffix == ".json" and not f.name.startswith(".")]
        alike: dict[str, list[_Unreadable]] = {}
        for one in found:
            if isinstance(one, _Unreadable):
                named = not isinstance(one, _OfAnotherVersion)
                alike.setdefault(one.file.name if named else one.what, []).append(one)
        for first, *others in alike.values():
            first.warn(len(others))
        return [one for one in found if isinstance(one, Record)]

    def checkpoint(self, id: str) -> Path:
        """Return where a cell in training keeps its checkpoint."""
        return self.path / "checkpoints" / f"{id}.pt"

    def save(self, record: Record) -> None:
        """Write a record, whole and on the disk when this returns."""
        file = self._file(record.id)
        temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as stream:
                stream.write(encode(record))
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(file)
            _sync_folder(self.path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise StoreError(
                f"cannot write {file.name} to the store '{self.path}': {reason(error)}; "
                "make room or choose another --store, then run the same command again"
            ) from error

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """Hold the store for one run: make the folder, lock it, sweep what dead writers left.

        Raises `StoreError` when it cannot be written or another run holds it.
        """
        try:
            self.checkpoint("").parent.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("a+")
        except OSError as error:
            raise StoreError(
                f"cannot write to the store '{self.path}': {reason(error)}; "
                "choose another --store or mend its permissions"
            ) from error
        with lock:
            self._take(lock)
            self._sweep()
            yield self

    def _sweep(self) -> None:
        """Delete what dead writers of ours left; files of other names stay."""
        checkpoints = self.checkpoint("").parent
        for folder, half in ((self.path, _HALF_RECORD), (checkpoints, _HALF_CHECKPOINT)):
            for file in folder.glob("*.tmp"):
                if half.fullmatch(file.name):
                    file.unlink(missing_ok=True)

    def _take(self, lock: IO[str]) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise StoreError(
                    f"the store '{self.path}' is on a file system without locks "
                    f"({reason(error)}); choose a --store on a local disk"
                ) from error
            lock.seek(0)
            holder = lock.read().strip()
            raise StoreError(
                f"the store '{self.path}' is in use by another run"
                f"{f' (process {holder})' if holder else ''}; "
                "wait for it to end or choose another --store"
            ) from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()

    def _file(self, id: str) -> Path:
        return self.path / f"{id}.json"


def _read(file: Path) -> Record | _Unreadable | None:
    """Return the record, or why it cannot be used; None where there is no file."""
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        return _Unreadable(file, "it is a folder", "move it out of the store")
    except OSError as error:
        return _Unreadable(file, reason(error), "mend its permissions")
    try:
        record = decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return _why_unreadable(file, data, error)
    if record.schema != SCHEMA:
        # It fits by chance: what its fields mean may have changed.
        return _of_another_version(file, record.schema)
    if record.id != file.stem:
        what = f"it holds the record of another cell, {record.id}"
        return _Unreadable(file, what, "rename or delete it")
    return record


def _why_unreadable(file: Path, data: bytes, error: Exception) -> _Unreadable:
    """Tell another version's record from a damaged file."""
    schema, remedy = None, "delete it and run its cell again"
    if not re.fullmatch(_ID, file.stem):
        remedy = "no record of a run has such a name: move it out of the store"
    try:
        schema = msgspec.json.decode(data, type=_Schema).schema
    except msgspec.ValidationError:
        # JSON, but nothing of ours: the first error says where.
        pass
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _Unreadable(file, "it is not JSON, perhaps cut off", remedy)
    if schema is not None and schema != SCHEMA:
        return _of_another_version(file, schema)
    return _Unreadable(file, f"it does not fit the schema ({error})", remedy)


def _of_another_version(file: Path, schema: int) -> _OfAnotherVersion:
    """Who wrote a record of another schema, and what to do."""
    newer = schema > SCHEMA
    which, remedy = "an older", "run its cell again"
    if newer:
        which, remedy = "a newer", "update this installation"
    what = f"{which} version wrote it (schema {schema}, this one reads {SCHEMA})"
    return _OfAnotherVersion(file, what, remedy, newer)


def _sync_folder(path: Path) -> None:
    """Make a rename survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
