"""Files of CIFAR-10: batches, an archive of them, arrays, tables, each told by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError
from tasks.contract import OnDefect
from tasks.sources.cifar10_arrays import array_pictures
from tasks.sources.cifar10_batches import BATCH, BATCHES, archived_pictures, batch_pictures
from tasks.sources.cifar10_pixels import Pictures
from tasks.sources.cifar10_tables import file_pictures, hub_pictures, picture_tables
from tasks.sources.files import (
    HUB,
    SPLIT_WORDS,
    Family,
    existing,
    ordinary,
    readable,
    source_files,
    to_the_end,
    unpacked,
)
from tasks.sources.tables import sound

_WORD = rf"(?P<stem>.*?)(?:^|[._-])(?P<word>{'|'.join(SPLIT_WORDS)})"
_PACKED = r"(?:\.gz|\.xz)?"
_ARRAY = re.compile(rf"{_WORD}[._-](?P<content>images|labels)\.npy{_PACKED}", re.IGNORECASE)
_RECORDS = re.compile(rf"{_WORD}(?P<rest>(?:[._-].*)?)\.bin{_PACKED}", re.IGNORECASE)
_ARCHIVE = re.compile(r".*\.(?:tar|tar\.gz|tgz|tar\.xz)", re.IGNORECASE)
_OFFICIAL_ARCHIVE = re.compile(r"cifar-10-(?:binary|python)\.tar\.gz")
_FORMS = (
    "data_batch_1.bin ... test_batch.bin, data_batch_1 ... test_batch, cifar-10-*.tar.gz, "
    "*_train_images.npy with *_train_labels.npy, *_train.bin, or Parquet with img and label"
)


class PictureSet(NamedTuple):
    """One set of pictures, not yet read."""

    files: tuple[Path, ...]
    splits: tuple[SplitName, ...]
    """Splits that the set itself has."""
    read: Callable[[SplitName, OnDefect], Iterable[Pictures]]
    """Yields a split's pictures in the order of its files."""


class _Piece(NamedTuple):
    """A file by what its name says."""

    of: str
    """Its set, by a name that no other in the folder has."""
    form: Literal["batches", "arrays", "records"]
    split: SplitName
    content: str
    """Which of the split's files it is."""
    path: Path


def picture_set(source: str) -> PictureSet:
    """Return the set in a file, a folder or `hub:NAME`; a file stands for the whole set it is of.

    Raises `DataError` where there is none, more than one, or not all of one.
    """
    if source.startswith(HUB):
        return _hub_set(source)
    path = existing(source)
    if path.is_file():
        return _set_of(path)
    with readable(path):
        files = sorted(path.iterdir())
        found = [_table_set(family) for family in picture_tables(path)]
    found += [_archive_set(file) for file in files if _OFFICIAL_ARCHIVE.fullmatch(file.name)]
    by_name = _by_name(files)
    if len(found) + len(by_name) > 1:
        firsts = [made.files[0] for made in found] + [pieces[0].path for pieces in by_name.values()]
        names = ", ".join(sorted(file.relative_to(path).as_posix() for file in firsts))
        raise DataError(
            f"folder '{source}' holds several sets ({names}); name one of the files", reached=False
        )
    found += [_complete(source, pieces) for pieces in by_name.values()]
    if not found:
        raise DataError(f"folder '{source}' holds no set of pictures; give one with {_FORMS}")
    return found[0]


def _set_of(path: Path) -> PictureSet:
    piece = _piece(path)
    if piece is not None:
        with readable(path.parent):
            beside = sorted(path.parent.iterdir())
        return _complete(str(path.parent), _by_name(beside)[piece.of])
    if _ARCHIVE.fullmatch(path.name):
        return _archive_set(path)
    if path.suffix.lower() == ".parquet":
        family = source_files(str(path), "image").family
        if family:
            return _table_set(family)
    raise DataError(f"'{path}' is no file of a set of pictures; give {_FORMS}")


def _piece(path: Path) -> _Piece | None:
    batch = BATCH.fullmatch(path.name)
    if batch:
        split: SplitName = "train" if batch["batch"] in BATCHES["train"] else "test"
        return _Piece(f"batches{batch['binary'] or ''}", "batches", split, batch["batch"], path)
    if path.name.startswith("."):
        return None
    array = _ARRAY.fullmatch(path.name)
    if array:
        split = SPLIT_WORDS[array["word"].lower()]
        name = f"{array['stem']}.npy".lower()
        return _Piece(name, "arrays", split, array["content"].lower(), path)
    records = _RECORDS.fullmatch(path.name)
    if records:
        name = f"{records['stem']}*{records['rest']}.bin".lower()
        return _Piece(name, "records", SPLIT_WORDS[records["word"].lower()], "records", path)
    return None


def _by_name(files: Iterable[Path]) -> dict[str, list[_Piece]]:
    found: dict[str, list[_Piece]] = {}
    for piece in map(_piece, files):
        if piece is not None:
            found.setdefault(piece.of, []).append(piece)
    return found


def _complete(source: str, pieces: list[_Piece]) -> PictureSet:
    """The set of these files; refuses one that lacks a file, or has one twice."""
    places: dict[tuple[SplitName, str], Path] = {}
    for piece in pieces:
        other = places.setdefault((piece.split, piece.content), piece.path)
        if other != piece.path:
            raise DataError(
                f"'{source}' has {other.name} under the name {piece.path.name} too; keep one"
            )
    there = {split for split, _ in places}
    splits = tuple(split for split in SPLITS if split in there or split != "validation")
    form = pieces[0].form
    for split in splits:
        for content in _needed(form, split):
            if (split, content) not in places:
                beside = ", ".join(piece.path.name for piece in pieces)
                raise DataError(
                    f"'{source}' lacks the {content} of {split} beside {beside}; "
                    f"copy or download all files"
                )

    def read(split: SplitName, on_defect: OnDefect) -> Iterator[Pictures]:
        paths = [places[split, content] for content in _needed(form, split)]
        if form == "arrays":
            images, labels = paths
            yield array_pictures(images, labels, on_defect)
        else:
            yield from sound(enumerate(paths), partial(_batch, on_defect), on_defect)

    return PictureSet(tuple(ordinary(piece.path) for piece in pieces), splits, read)


def _batch(on_defect: OnDefect, _: int, path: Path) -> Pictures:
    return batch_pictures(str(path), unpacked(path), ".bin" in path.name.lower(), on_defect)


def _needed(form: str, split: SplitName) -> tuple[str, ...]:
    """The files of a split in their order."""
    if form == "batches":
        return BATCHES[split]
    return ("images", "labels") if form == "arrays" else ("records",)


def _archive_set(path: Path) -> PictureSet:
    return PictureSet((ordinary(path),), ("train", "test"), partial(archived_pictures, path))


def _table_set(family: Family) -> PictureSet:
    def read(split: SplitName, on_defect: OnDefect) -> Iterator[Pictures]:
        for path in family[split]:
            yield from to_the_end(file_pictures(path, on_defect), on_defect)

    files = tuple(path for paths in family.values() for path in paths)
    return PictureSet(files, tuple(split for split in SPLITS if split in family), read)


def _hub_set(source: str) -> PictureSet:
    from tasks.sources.hub import hub_splits

    tables = hub_splits(source, "image")
    return PictureSet((), tuple(tables), lambda split, tell: hub_pictures(tables[split], tell))
