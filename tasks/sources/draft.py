"""A prepared set in the making: raw files that grow part by part, and a journal of what is whole.

After a kill, an interruption or a full disk, the next process with the same key cuts the files back
to the journal and goes on with the next part. A lock keeps two processes from one draft.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.dataset import SPLITS, Split, SplitName
from lra.core.errors import DataError
from lra.core.hashing import checksum

_BUFFERS = ("tokens", "lengths", "labels")
_FILES = tuple(f"{split}.{buffer}" for split in SPLITS for buffer in _BUFFERS)
_LOCK = "lock"
_JOURNAL = "journal.json"


class _Journal(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes and checksums of a draft's files as far as they are whole."""

    key: str
    parts: int = 0
    tokens: str = ""
    """Type of a token, as numpy names it; empty before there is one."""
    by_token: bool = False
    sizes: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(_FILES, 0))
    checksums: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(_FILES, 0))
    """CRC-32 of so much of each file."""


class Draft:
    """Splits that are appended to, `inputs` sequences an example; see `drafting`."""

    def __init__(self, folder: Path, place: Path, key: str, inputs: int) -> None:
        self.folder = folder
        self.place = place
        self.inputs = inputs
        self._journal = self._kept(key)
        self._checksums = dict(self._journal.checksums)
        self._open = ExitStack()
        self._streams: dict[str, FileIO] = {}
        with writing(folder):
            for name in _FILES:
                stream = self._open.enter_context(FileIO(place / name, "a"))
                stream.truncate(self._journal.sizes[name])
                self._streams[name] = stream

    @property
    def parts(self) -> int:
        """Number of parts that are whole."""
        return self._journal.parts

    @property
    def rows(self) -> dict[SplitName, int]:
        """Examples of each split, of a part that is being appended too."""
        each = np.dtype(np.int64).itemsize * self.inputs
        return {split: self._size(f"{split}.lengths") // each for split in SPLITS}

    def append(self, name: SplitName, split: Split) -> None:
        """Add examples to a split; they stay where `commit` follows."""
        journal, kind = self._journal, str(split.tokens.dtype)
        if journal.tokens not in ("", kind) and split.tokens.size:
            raise ValueError(f"tokens are {kind}, those before were {journal.tokens}")
        if split.tokens.size:
            self._journal = msgspec.structs.replace(journal, tokens=kind, by_token=split.by_token)
        arrays = (split.tokens, np.diff(split.starts), split.labels)
        with writing(self.folder):
            for buffer, array in zip(_BUFFERS, arrays, strict=True):
                self._write(f"{name}.{buffer}", array)

    def commit(self) -> None:
        """Count what was appended as one more part that is whole."""
        with writing(self.folder):
            self._journal = msgspec.structs.replace(
                self._journal,
                parts=self._journal.parts + 1,
                sizes={name: self._size(name) for name in _FILES},
                checksums=dict(self._checksums),
            )
            fresh = self.place / "journal.new"
            content = msgspec.json.encode(self._journal)
            fresh.write_bytes(_seal(content) + content)
            fresh.replace(self.place / _JOURNAL)

    def drop(self) -> None:
        """Count nothing as whole, so that nothing is kept."""
        self._journal = msgspec.structs.replace(self._journal, parts=0)

    def split(self, name: SplitName) -> Split:
        """Return a split, its tokens and labels mapped from the files."""
        journal = self._journal
        lengths = self._mapped(f"{name}.lengths", np.dtype(np.int64))
        starts = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=starts[1:])
        return Split(
            self._mapped(f"{name}.tokens", np.dtype(journal.tokens or np.uint8)),
            starts,
            self._mapped(f"{name}.labels", np.dtype(np.int16 if journal.by_token else np.int64)),
            self.inputs,
            journal.by_token,
        )

    def close(self) -> None:
        """Close the files."""
        self._open.close()

    def _kept(self, key: str) -> _Journal:
        """The journal of a draft with this key whose files hold what was written; else an empty
        one: parts are not synced, and a power failure may leave a file longer than it is sound."""
        try:
            told = (self.place / _JOURNAL).read_bytes()
            seal, content = told[: len(_seal(b""))], told[len(_seal(b"")) :]
            found = msgspec.json.decode(content, type=_Journal)
            if (
                seal == _seal(content)
                and found.key == key
                and all(self._is_whole(name, found) for name in _FILES)
            ):
                return found
        except (OSError, KeyError, UnicodeDecodeError, msgspec.DecodeError):
            pass
        return _Journal(key=key)

    def _is_whole(self, name: str, journal: _Journal) -> bool:
        file, size = self.place / name, journal.sizes[name]
        return file.stat().st_size >= size and checksum(file, size) == journal.checksums[name]

    def _write(self, name: str, array: npt.NDArray[np.integer]) -> None:
        left = np.ascontiguousarray(array).data.cast("B")
        while left.nbytes:
            # Without a buffer of Python's: a full disk must not be met a second time on closing.
            written = self._streams[name].write(left)
            self._checksums[name] = zlib.crc32(left[:written], self._checksums[name])
            left = left[written:]

    def _size(self, name: str) -> int:
        return os.fstat(self._streams[name].fileno()).st_size

    def _mapped(self, name: str, kind: np.dtype[np.integer]) -> npt.NDArray[np.integer]:
        if not self._size(name):
            return np.zeros(0, dtype=kind)
        return np.memmap(self.place / name, dtype=kind, mode="r")


def _seal(content: bytes) -> bytes:
    """Checksum of a journal: one that counts a part too many would make a set with rows too few."""
    return b"%08x\n" % zlib.crc32(content)


@contextmanager
def drafting(
    folder: Path, key: str, inputs: int, waiting: Callable[[], None]
) -> Iterator[Draft | None]:
    """Yield the draft of the set that is to lie in `folder`, None where it has come to lie there.

    The draft goes on from what a process with the same `key` left; one of another key is begun
    anew. `waiting` is called where another process is at it. The draft is removed once `folder` is
    there, where no part became whole, and where it was dropped.
    """
    place = folder.with_name(f".{folder.name}.draft")
    with _locked(folder, place, waiting):
        if folder.is_dir():
            _remove(place)
            yield None
            return
        draft = None
        try:
            draft = Draft(folder, place, key, inputs)
            yield draft
        finally:
            if draft is not None:
                draft.close()
            # A draft that could not be opened is what it was, for whoever opens it next.
            kept = draft.parts if draft is not None else (place / _JOURNAL).exists()
            if folder.is_dir() or not kept:
                _remove(place)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn a full disk and the like into one line about the set that is to lie in `folder`."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        mend = "free space" if full else "mend that"
        raise DataError(
            f"cannot write the prepared set '{folder}': {reason}; {mend} and run again to go "
            f"on, or choose another folder for prepared data"
        ) from error


@contextmanager
def _locked(folder: Path, place: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a draft, which the kernel frees however its holder ends."""
    with writing(folder):
        descriptor = _lock(place, waiting)
    try:
        yield
    finally:
        os.close(descriptor)


def _remove(place: Path) -> None:
    """Remove a draft whose lock is held. The lock goes last: until then nobody begins another."""
    with suppress(OSError):
        for inside in place.iterdir():
            if inside.is_dir():
                shutil.rmtree(inside)
            elif inside.name != _LOCK:
                inside.unlink()
        (place / _LOCK).unlink()
        place.rmdir()


def _lock(place: Path, waiting: Callable[[], None]) -> int:
    while True:
        place.mkdir(parents=True, exist_ok=True)
        path = place / _LOCK
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            # Whoever finished has just removed the draft.
            continue
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # A lock on a file that is no longer there is held against nobody.
        os.close(descriptor)
