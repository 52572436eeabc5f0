"""Texts with a class each: Parquet, CSV, a folder laid out as aclImdb, or a set on the hub.

The texts of a split come in the order of their hashes, so that the first rows are a fair sample
even of files sorted by label, and every form of one data set gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError
from lra.core.protocol import Rows, Rules
from tasks.sources.files import HUB, SPLIT_WORDS, readable, source_files
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

Texts = tuple[list[bytes], npt.NDArray[np.int64]]
"""UTF-8 texts and their labels."""

_Example = tuple[int, int, bytes]
"""Content key, label, text: sorts by content alone."""
_Parts = dict[SplitName, list[_Example]]

_COLUMNS = ("text", "label")
_CLASSES = 2


def read_labelled_text(
    source: str, rows: Rows, *, rules: Rules = "fixed", task: str = "text"
) -> dict[SplitName, Texts]:
    """Read the three splits, at most `rows` of each.

    `source` is a folder or a file of a family such as imdb_train.parquet and imdb_test.parquet, a
    single Parquet or CSV file (with a column `split`, or else split by content), a folder with
    train/pos, train/neg, test/pos and test/neg, or `hub:NAME`. A source without a validation split
    has a tenth of its training texts held out, chosen by the hash of the text; under lra2021 rules
    validation is the test split. Raises `DataError` naming file, row and remedy.
    """
    parts = _read(source, task)
    if rules == "lra2021":
        parts["validation"] = parts["test"]
    elif not parts["validation"]:
        train = parts["train"]
        parts["validation"] = [example for example in train if held_out(example[0])]
        parts["train"] = [example for example in train if not held_out(example[0])]
    for split in SPLITS:
        if not parts[split]:
            raise DataError(f"'{source}' has no rows for {split}; give a source with more rows")
    return {split: _texts(parts[split], rows.of(split)) for split in SPLITS}


def _texts(examples: list[_Example], rows: int) -> Texts:
    chosen = sorted(examples)[:rows]
    labels = np.array([label for _, label, _ in chosen], dtype=np.int64)
    return [text for _, _, text in chosen], labels


def _read(source: str, task: str) -> _Parts:
    parts: _Parts = {split: [] for split in SPLITS}
    if source.startswith(HUB):
        _read_hub(source, task, parts)
        return parts
    files = source_files(source, "text")
    if files.reviews:
        _read_reviews(files.reviews, parts)
    if files.single is not None:
        _read_single(files.single, parts)
    for split, paths in files.family.items():
        for path in paths:
            parts[split] += _examples(path, read_rows(path, _COLUMNS))
    return parts


def _read_hub(source: str, task: str, parts: _Parts) -> None:
    from tasks.sources.hub import load_hub

    tables = load_hub(source, task)
    for name, table in tables.items():
        split = SPLIT_WORDS.get(name)
        if split is not None:
            where = f"{source}, split {name}"
            batches = table.to_batches(max_chunksize=1024)
            parts[split] += _examples(where, batch_rows(where, batches, _COLUMNS))
    for needed in ("train", "test"):
        if not parts[needed]:
            raise DataError(
                f"{source} has no {needed} split, only {', '.join(sorted(tables))}; "
                f"choose a data set with train and test"
            )


def _read_reviews(files: tuple[Path, ...], parts: _Parts) -> None:
    folder = files[0].parents[2]
    for file in files:
        with readable(file):
            content = file.read_bytes()
        text = read_text(file, 1, content)
        label = int(file.parent.name == "pos")
        split = SPLIT_WORDS[file.parent.parent.name]
        parts[split].append((content_key(text), label, text))
    for split in ("train", "test"):
        labels = {label for _, label, _ in parts[split]}
        for label, side in enumerate(("neg", "pos")):
            if label not in labels:
                raise DataError(
                    f"'{folder / split / side}' holds no texts; unpack the whole archive again"
                )


def _read_single(path: Path, parts: _Parts) -> None:
    for row, (text, label, word) in read_rows(path, _COLUMNS, optional=("split",)):
        example = _example(path, row, text, label)
        parts[_split_of(path, row, word, example[0])].append(example)


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


def _examples(where: Path | str, found: Iterable[Row]) -> list[_Example]:
    return [_example(where, row, text, label) for row, (text, label) in found]


def _example(where: Path | str, row: int, text: object, label: object) -> _Example:
    content = read_text(where, row, text)
    return content_key(content), read_label(where, row, label, _CLASSES), content
