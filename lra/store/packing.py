"""Packing of a store: its loose records go into packs, and their files are removed once the packs
are on disk.

At every instant each record is in a file of its own or in a pack, or in both: where packing is
killed nothing is lost, and packing again completes it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from lra.core.errors import StoreError, system_reason
from lra.store.atomic import write_atomically
from lra.store.folder import Store
from lra.store.packs import KIND, SUFFIX, compress_lines
from lra.store.unreadable import NOT_OURS


class Packing(msgspec.Struct, frozen=True):
    """Result of packing a store."""

    records: int
    """Number of records that were loose."""
    files: int
    """Number of packs afterwards."""
    before: int
    """Bytes of those records and of the packs before."""
    after: int
    """Bytes of the packs afterwards."""


class _Cell(msgspec.Struct):
    type: str


class _Kind(msgspec.Struct):
    cell: _Cell


def pack(store: Store) -> Packing:
    """Pack all loose records of a store that can be read; the others stay, each with a warning.

    The caller holds the store for writing. Raises `StoreError` where a pack is damaged, or two
    disagree, before anything is written; also where writing fails.
    """
    loose = dict(_loose_records(store))
    packed = store.packed()
    if packed.faulty:
        raise _damaged(store, packed.faulty[0])
    for id in sorted(packed.disputed.keys() - loose.keys()):
        raise StoreError(f"cannot pack the store '{store.path}': {packed.disputed[id]}")
    lines: dict[str, tuple[str, bytes]] = {}
    for id, line in packed.lines.items():
        if (kind := _kind(line.data)) is None:
            raise _damaged(store, line.file)
        lines[id] = (kind, line.data.rstrip(b"\n"))
    for id, (_, kind, data) in loose.items():
        lines[id] = (kind, msgspec.json.format(data, indent=-1))
    files: defaultdict[Path, list[bytes]] = defaultdict(list)
    for _, (kind, data) in sorted(lines.items()):
        files[store.path / f"{kind}{SUFFIX}"].append(data)
    single = [file for file, _, _ in loose.values()]
    before = _size([*single, *packed.files])
    try:
        for file, own in files.items():
            data = compress_lines(own)
            if file not in packed.files or file.read_bytes() != data:
                write_atomically(file, data)
        # Other packs first: while a record is loose, their version of it does not count.
        for file in (*(one for one in packed.files if one not in files), *single):
            file.unlink()
    except OSError as error:
        raise StoreError(
            f"cannot pack the store '{store.path}': {system_reason(error)}; nothing is lost: make "
            "room or mend its permissions, then run the same command again"
        ) from error
    return Packing(len(loose), len(files), before, _size(files))


def _loose_records(store: Store) -> Iterator[tuple[str, tuple[Path, str, bytes]]]:
    """Return the readable loose records by id, with their files, kinds and bytes."""
    for id, file in store.loose().items():
        if (record := store.load(id)) is not None:
            kind = str(record.cell.__struct_config__.tag)
            yield id, (file, kind, file.read_bytes())


def _kind(data: bytes) -> str | None:
    """Return the kind of a record, of this version or another; None where it cannot be read."""
    try:
        # Decoded in full: skipped fields are not checked for valid characters.
        kind = msgspec.convert(msgspec.json.decode(data), _Kind).cell.type
    except NOT_OURS:
        return None
    return kind if re.fullmatch(KIND, kind) else None


def _damaged(store: Store, file: Path) -> StoreError:
    """Return the error that refuses to overwrite a damaged pack, which may still be saved
    otherwise."""
    return StoreError(
        f"cannot pack the store '{store.path}': {file.name} is damaged and would be written over; "
        "restore it, or move it out of the store"
    )


def _size(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files)
