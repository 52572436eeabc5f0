"""Pictures as PNG in Parquet files, as the Hugging Face hub has CIFAR-10, or from the hub itself.

The picture is in a column `img` or `image`: its bytes, or a struct with `bytes`; `label` is beside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lra.core.errors import DataError
from tasks.contract import OnDefect
from tasks.sources.cifar10_pixels import CLASSES, PIXELS, SIDE, U8, Pictures, grey
from tasks.sources.files import (
    SPLIT_WORDS,
    Family,
    hidden,
    ordinary,
    refuse_parts,
    says_split,
    source_files,
)
from tasks.sources.png import png_pixels
from tasks.sources.tables import ABSENT, Row, bad_row, batch_rows, read_label, read_rows, sound

if TYPE_CHECKING:
    import pyarrow as pa

_IMAGE_COLUMNS = ("img", "image")
_IN_FOLDER = re.compile(
    r"(?P<word>.*?)(?:(?:^|-)(?P<shard>\d{4,5})(?:-of-(?P<shards>\d{5})(?:-[0-9a-f]{16})?)?)?\.parquet",
    re.IGNORECASE | re.DOTALL,
)
"""A name in the folder of a split, which need not say the split again: any word will do."""
_PICTURES_AT_ONCE = 1000


def file_pictures(path: Path, on_defect: OnDefect) -> Iterator[Pictures]:
    """Yield the pictures of a Parquet file, some at a time."""
    rows = read_rows(path, ("label",), optional=_IMAGE_COLUMNS)
    return _pictures(str(path), rows, on_defect)


def hub_pictures(tables: dict[str, pa.Table], on_defect: OnDefect) -> Iterator[Pictures]:
    """Yield the pictures of tables of the hub, by what errors call these."""
    for where, table in tables.items():
        batches = table.to_batches(max_chunksize=_PICTURES_AT_ONCE)
        rows = batch_rows(where, batches, ("label",), optional=_IMAGE_COLUMNS)
        yield from _pictures(where, rows, on_defect)


def picture_tables(folder: Path) -> list[Family]:
    """Return the sets of Parquet files with pictures in a folder and those below it.

    The split is what the file's folder is called (`train/0000.parquet`) where there is one for
    train and one for test, else what the file's name says. Raises `DataError` where a set has no
    train or test, lacks shards or has one twice.
    """
    files = [
        file
        for file in sorted(folder.rglob("*.parquet"))
        if not hidden(file) and _holds_pictures(file)
    ]
    by_folder = _by_folder(folder, files)
    placed = {file for family in by_folder for paths in family.values() for file in paths}
    by_name: dict[tuple[Path, ...], Family] = {}
    for file in files:
        if file in placed:
            continue
        found = source_files(str(ordinary(file)), "image")
        if found.single is not None:
            raise DataError(f"'{file}' says no split; rename it, with train or test in its name")
        by_name[tuple(found.files)] = found.family
    return [*by_name.values(), *by_folder]


def _by_folder(folder: Path, files: Iterable[Path]) -> list[Family]:
    """The sets below a folder that have a folder of their own for each split."""
    found: dict[Path, Family] = {}
    for file in files:
        split = SPLIT_WORDS.get(file.parent.name.lower())
        if split is not None and file.parent != folder:
            found.setdefault(file.parent.parent, {}).setdefault(split, []).append(file)
    whole = []
    for root, family in found.items():
        lacking = [split for split in ("train", "test") if split not in family]
        if not lacking:
            for split, paths in family.items():
                for path in paths:
                    ordinary(path)
                matches = [_IN_FOLDER.fullmatch(path.name) for path in paths]
                refuse_parts(str(root), split, [match for match in matches if match])
            whole.append(family)
        elif not all(says_split(file) for paths in family.values() for file in paths):
            raise DataError(f"'{root}' has no Parquet files in a folder '{lacking[0]}'; add them")
    return whole


def _holds_pictures(file: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns = set(pq.read_schema(ordinary(file)).names)
    except (DataError, pa.ArrowException, OSError):
        # Reading it will say what is wrong. A file of no split may be anything.
        return says_split(file) or file.parent.name.lower() in SPLIT_WORDS
    return "label" in columns and not columns.isdisjoint(_IMAGE_COLUMNS)


def _pictures(name: str, rows: Iterable[Row], on_defect: OnDefect) -> Iterator[Pictures]:
    def read(row: int, cells: tuple[Any, Any]) -> tuple[int, U8]:
        label, image = cells
        return read_label(name, row, label, CLASSES), _decoded(name, row, image)

    found = sound(_cells(name, rows), read, on_defect)
    while some := list(islice(found, _PICTURES_AT_ONCE)):
        labels, pixels = zip(*some, strict=True)
        yield Pictures(grey(np.stack(pixels)), np.array(labels, dtype=np.int64))


def _cells(name: str, rows: Iterable[Row]) -> Iterator[tuple[int, tuple[Any, Any]]]:
    """Label and picture of each row, as far as the names beside the pictures are texts."""
    try:
        for row, (label, *images) in rows:
            there = [image for image in images if image is not ABSENT]
            if not there:
                what = "has no column 'img' or 'image'; rename the pictures' column"
                raise DataError(f"'{name}' {what}")
            yield row, (label, there[0])
    except UnicodeDecodeError as error:
        raise DataError(f"'{name}' has a name that is not UTF-8; download it again") from error


def _decoded(name: str, row: int, image: Any) -> U8:
    """Red, green and blue of a picture, (3, 1024)."""
    content = image.get("bytes") if isinstance(image, dict) else image
    if not isinstance(content, bytes):
        raise bad_row(name, row, "the picture is missing; remove the row")
    try:
        stored = png_pixels(content, SIDE, ("L", "RGB"))
    except ValueError as error:
        raise bad_row(name, row, f"the picture {error}") from error
    channels = stored.reshape(PIXELS, -1).T
    return np.broadcast_to(channels, (3, PIXELS))
