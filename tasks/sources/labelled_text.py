"""Texts with a class each: Parquet, CSV, a folder laid out as aclImdb, or a set on the hub.

The texts of a split come in the order of their hashes, so that the first rows are a fair sample
even of files sorted by label, and every form of one data set gives the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError
from lra.core.protocol import Rules
from tasks.contract import Example, OnDefect, Part
from tasks.sources.files import HUB, SPLIT_WORDS, readable, source_files, to_the_end
from tasks.sources.holdout import assigned, content_key, held_out
from tasks.sources.tables import (
    ABSENT,
    Row,
    batch_rows,
    document_tokens,
    read_label,
    read_rows,
    read_split,
    read_text,
    sound,
)

if TYPE_CHECKING:
    import pyarrow as pa

_Text = tuple[int, int, bytes]
"""Content key, label, text: sorts by content alone."""
_Read = Callable[[OnDefect], Iterable[tuple[SplitName, _Text]]]

_COLUMNS = ("text", "label")
_OPEN_ENDED = ("text",)
_CLASSES = 2


class _Piece(NamedTuple):
    """Texts that are read and sorted together."""

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
        examples = partial(_examples, piece.read, rules, hold_out)
        parts.append(Part(piece.name, examples, None if two else piece.split))
    return parts


def _examples(read: _Read, rules: Rules, hold_out: bool, on_defect: OnDefect) -> Iterator[Example]:
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


def _files(source: str) -> list[_Piece]:
    files = source_files(source, "text")
    if files.single is not None:
        return [_Piece(files.single.name, None, partial(_single, files.single))]
    if files.reviews:
        return _reviews(files.reviews)
    return [
        _Piece(", ".join(path.name for path in paths), split, partial(_family, split, paths))
        for split, paths in files.family.items()
    ]


def _single(path: Path, on_defect: OnDefect) -> Iterator[tuple[SplitName, _Text]]:
    """The texts of a file, in the splits that its rows name, or else their contents decide."""

    def read(row: int, cells: tuple[object, ...]) -> tuple[SplitName, _Text]:
        *text_and_label, word = cells
        found = _text(path, row, *text_and_label)
        if word is not ABSENT:
            return read_split(path, row, word), found
        return "test" if assigned(found[0]) == "test" else "train", found

    rows = read_rows(path, _COLUMNS, ("split",), open_ended=_OPEN_ENDED, on_defect=on_defect)
    yield from sound(rows, read, on_defect)


def _family(
    split: SplitName, paths: list[Path], on_defect: OnDefect
) -> Iterator[tuple[SplitName, _Text]]:
    for path in paths:
        rows = read_rows(path, _COLUMNS, open_ended=_OPEN_ENDED, on_defect=on_defect)
        yield from to_the_end(_texts(path, rows, split, on_defect), on_defect)


def _reviews(files: tuple[Path, ...]) -> list[_Piece]:
    folder = files[0].parents[2]
    pieces: list[_Piece] = []
    for name in ("train", "test"):
        mine = [file for file in files if file.parent.parent.name == name]
        for side in ("neg", "pos"):
            if not any(file.parent.name == side for file in mine):
                raise DataError(
                    f"'{folder / name / side}' holds no texts; unpack the whole archive again"
                )
        split = SPLIT_WORDS[name]
        pieces.append(_Piece(split, split, partial(_each_a_text, split, mine)))
    return pieces


def _each_a_text(
    split: SplitName, files: list[Path], on_defect: OnDefect
) -> Iterator[tuple[SplitName, _Text]]:
    def read(_: int, file: Path) -> tuple[SplitName, _Text]:
        with readable(file):
            content = file.read_bytes()
        return split, _text(file, 1, content, int(file.parent.name == "pos"))

    return sound(enumerate(files), read, on_defect)


def _hub(source: str, task: str) -> list[_Piece]:
    from tasks.sources.hub import hub_splits

    tables = hub_splits(source, task)
    return [_Piece(name, name, partial(_hub_texts, name, held)) for name, held in tables.items()]


def _hub_texts(
    split: SplitName, tables: dict[str, pa.Table], on_defect: OnDefect
) -> Iterator[tuple[SplitName, _Text]]:
    for where, table in tables.items():
        rows = batch_rows(where, table.to_batches(max_chunksize=1024), _COLUMNS)
        yield from _texts(where, rows, split, on_defect)


def _texts(
    where: Path | str, rows: Iterable[Row], split: SplitName, on_defect: OnDefect
) -> Iterator[tuple[SplitName, _Text]]:
    return sound(rows, lambda row, cells: (split, _text(where, row, *cells)), on_defect)


def _text(where: Path | str, row: int, text: object, label: object) -> _Text:
    content = read_text(where, row, text)
    return content_key(content), read_label(where, row, label, _CLASSES), content
