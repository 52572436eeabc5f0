"""Texts with a class each: Parquet, CSV, a folder laid out as aclImdb, or a set on the hub.

The texts of a split come in the order of their hashes, so that the first rows are a fair sample
even of files sorted by label, and every form of one data set gives the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError
from lra.core.protocol import Rules
from tasks.contract import Example, OnDefect, Part
from tasks.sources.documents import document_tokens
from tasks.sources.files import HUB, SPLIT_WORDS, readable, source_files, to_the_end
from tasks.sources.holdout import assigned, content_key, held_out
from tasks.sources.tables import (
    ABSENT,
    Row,
    bad_row,
    batch_rows,
    read_label,
    read_rows,
    read_text,
    shown,
)

_Text = tuple[int, int, bytes]
"""Content key, label, text: sorts by content alone."""
_Read = Callable[[OnDefect], Iterable[tuple[SplitName, _Text]]]

_COLUMNS = ("text", "label")
_OPEN_ENDED = ("text",)
_CLASSES = 2


class _Piece(NamedTuple):
    """What is read and sorted together."""

    name: str
    split: SplitName | None
    read: _Read


def labelled_text_parts(source: str, *, rules: Rules, task: str) -> Sequence[Part]:
    """Return a part for each split of a source, for a single file one in all.

    `source` is a folder or a file of a family such as imdb_train.parquet and imdb_test.parquet, a
    single Parquet or CSV file (with a column `split`, or else split by content), a folder with
    train/pos, train/neg, test/pos and test/neg, or `hub:NAME`. A source without a validation split
    has a tenth of its training texts held out, chosen by the hash of the text; under lra2021 rules
    validation is the test split. A part's texts are held in memory. Raises `DataError`.
    """
    pieces = _hub(source, task) if source.startswith(HUB) else _files(source)
    given = {piece.split for piece in pieces}
    hold_out = rules == "fixed" and "validation" not in given
    parts = []
    for piece in pieces:
        if rules == "lra2021" and piece.split == "validation":
            continue
        two = (rules == "lra2021" and piece.split == "test") or (
            hold_out and piece.split == "train"
        )
        examples = _examples(piece.read, rules, hold_out)
        parts.append(Part(piece.name, examples, None if two else piece.split))
    return parts


def _examples(read: _Read, rules: Rules, hold_out: bool) -> Callable[[OnDefect], Iterable[Example]]:
    def examples(on_defect: OnDefect) -> Iterator[Example]:
        found: dict[SplitName, list[_Text]] = {split: [] for split in SPLITS}
        for split, text in read(on_defect):
            found[split].append(text)
        if rules == "lra2021":
            found["validation"] = found["test"]
        elif hold_out and not found["validation"]:
            train = found["train"]
            found["validation"] = [text for text in train if held_out(text[0])]
            found["train"] = [text for text in train if not held_out(text[0])]
        for split in SPLITS:
            for _, label, content in sorted(found[split]):
                yield Example(split, (document_tokens(content),), label)

    return examples


def _files(source: str) -> list[_Piece]:
    files = source_files(source, "text")
    if files.single is not None:
        return [_Piece(files.single.name, None, _single(files.single))]
    if files.reviews:
        return _reviews(files.reviews)
    return [
        _Piece(", ".join(path.name for path in paths), split, _family(split, paths))
        for split, paths in files.family.items()
    ]


def _single(path: Path) -> _Read:
    def read(on_defect: OnDefect) -> Iterator[tuple[SplitName, _Text]]:
        rows = read_rows(
            path, _COLUMNS, optional=("split",), open_ended=_OPEN_ENDED, on_defect=on_defect
        )
        for row, (text, label, word) in rows:
            try:
                found = _text(path, row, text, label)
                split = _split_of(path, row, word, found[0])
            except DataError as defect:
                on_defect(defect)
            else:
                yield split, found

    return read


def _family(split: SplitName, paths: list[Path]) -> _Read:
    def read(on_defect: OnDefect) -> Iterator[tuple[SplitName, _Text]]:
        for path in paths:
            rows = read_rows(path, _COLUMNS, open_ended=_OPEN_ENDED, on_defect=on_defect)
            yield from to_the_end(_texts(path, rows, split, on_defect), on_defect)

    return read


def _reviews(files: tuple[Path, ...]) -> list[_Piece]:
    folder = files[0].parents[2]
    pieces: list[_Piece] = []
    for split in ("train", "test"):
        mine = [file for file in files if file.parent.parent.name == split]
        for side in ("neg", "pos"):
            if not any(file.parent.name == side for file in mine):
                raise DataError(
                    f"'{folder / split / side}' holds no texts; unpack the whole archive again"
                )
        pieces.append(_Piece(split, SPLIT_WORDS[split], _each_a_text(SPLIT_WORDS[split], mine)))
    return pieces


def _each_a_text(split: SplitName, files: list[Path]) -> _Read:
    def read(on_defect: OnDefect) -> Iterator[tuple[SplitName, _Text]]:
        for file in files:
            label = int(file.parent.name == "pos")
            try:
                with readable(file):
                    content = file.read_bytes()
            except DataError as defect:
                on_defect(defect)
            else:
                yield from _texts(file, [(1, (content, label))], split, on_defect)

    return read


def _hub(source: str, task: str) -> list[_Piece]:
    from tasks.sources.hub import load_hub

    tables = load_hub(source, task)
    by_split: dict[SplitName, list[str]] = {}
    for name, table in tables.items():
        if name in SPLIT_WORDS and table.num_rows:
            by_split.setdefault(SPLIT_WORDS[name], []).append(name)
    for needed in ("train", "test"):
        if needed not in by_split:
            raise DataError(
                f"{source} has no {needed} split, only {', '.join(sorted(tables))}; "
                f"choose a data set with train and test"
            )

    def reader(split: SplitName) -> _Read:
        def read(on_defect: OnDefect) -> Iterator[tuple[SplitName, _Text]]:
            for name in by_split[split]:
                where = f"{source}, split {name}"
                batches = tables[name].to_batches(max_chunksize=1024)
                yield from _texts(where, batch_rows(where, batches, _COLUMNS), split, on_defect)

        return read

    return [_Piece(split, split, reader(split)) for split in SPLITS if split in by_split]


def _split_of(path: Path, row: int, word: object, key: int) -> SplitName:
    """The split that a row names; where there is no column for it, the one its content decides."""
    if word is ABSENT:
        side = assigned(key)
        return "train" if side == "validation" else side
    name = word.decode("utf-8", "replace").strip().lower() if isinstance(word, bytes) else ""
    if name not in SPLIT_WORDS:
        raise bad_row(
            path, row, f"split {shown(word)} is none of train, validation, test; correct it"
        )
    return SPLIT_WORDS[name]


def _texts(
    where: Path | str, rows: Iterable[Row], split: SplitName, on_defect: OnDefect
) -> Iterator[tuple[SplitName, _Text]]:
    for row, (text, label) in rows:
        try:
            found = _text(where, row, text, label)
        except DataError as defect:
            on_defect(defect)
        else:
            yield split, found


def _text(where: Path | str, row: int, text: object, label: object) -> _Text:
    content = read_text(where, row, text)
    return content_key(content), read_label(where, row, label, _CLASSES), content
