"""Running text for language modelling: text files, plain or gzipped, or Parquet with documents.

A folder's files belong to the split that a word of their name says (wiki.train.txt.gz). A file that
is named is read alone and cut in three where it stands, as enwik8 usually is: the first nine tenths
to train on, the next twentieth to validate, the last to test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from lra.core.dataset import SPLITS, UNASKED, SplitName
from lra.core.errors import DataError
from tasks.contract import Example, OnDefect, Part
from tasks.sources.files import (
    OF_SPLIT,
    SPLIT_WORDS,
    Sources,
    existing,
    named_files,
    ordinary,
    refuse_parts,
    unpacked,
)
from tasks.sources.tables import bad_row, read_rows

_KINDS = (".txt", ".txt.gz", ".parquet")
_NAME = re.compile(
    rf"(?P<stem>.*)(?:^|[^a-z0-9]){OF_SPLIT}(?:[^a-z0-9].*)?\.(?:txt|txt\.gz|parquet)",
    re.IGNORECASE,
)
"""The name of a split's file in a folder. The last word counts that says a split."""
_CUTS: dict[SplitName, tuple[float, float]] = {
    "train": (0.0, 0.9),
    "validation": (0.9, 0.95),
    "test": (0.95, 1.0),
}


def text_parts(source: str, length: int) -> Sequence[Part]:
    """Return a part for each split of a file, or for each file of a folder.

    Examples are windows of `length` bytes, one after the other; each byte's label is the next one.
    """
    found = text_files(source)
    if found.single is None:
        return [
            Part(path.name, partial(_windows, path, (0.0, 1.0), split, length), split)
            for split, paths in found.family.items()
            for path in paths
        ]
    path = found.single
    return [
        Part(f"{path.name}, {split}", partial(_windows, path, share, split, length), split)
        for split, share in _CUTS.items()
    ]


def text_files(source: str) -> Sources:
    """Return the files that a source is read from: one, whatever its name says, or a folder's.

    Raises `DataError` where a file is of another kind, and where a folder has several texts, none
    for a split, two names for one, or not all of its shards.
    """
    path = existing(source)
    if path.is_file():
        # Texts that are often taken, such as enwik8, have no suffix.
        if path.suffix and not path.name.lower().endswith(_KINDS):
            raise DataError(
                f"'{source}' is none of {', '.join(_KINDS)}; unpack or convert it, or rename it "
                f"where it is text"
            )
        return Sources(path, {}, ())
    by_split: dict[SplitName, list[re.Match[str]]] = {}
    texts: dict[str, str] = {}
    for match in named_files(path, _NAME):
        by_split.setdefault(SPLIT_WORDS[match["word"].lower()], []).append(match)
        texts.setdefault(match["stem"].lower(), match.string)
    if len(texts) > 1:
        raise DataError(
            f"folder '{source}' holds several texts ({', '.join(texts.values())}); "
            f"give each a folder of its own, or name a file",
            reached=False,
        )
    for needed in SPLITS:
        if needed not in by_split:
            raise DataError(
                f"folder '{source}' has no text for {needed}; add a file (.txt, .txt.gz or "
                f".parquet) with '{needed}' in its name, or name a single file"
            )
        refuse_parts(source, needed, by_split[needed])
    family = {
        split: [ordinary(path / match.string) for match in by_split[split]] for split in SPLITS
    }
    return Sources(None, family, ())


def _windows(
    path: Path, share: tuple[float, float], split: SplitName, length: int, on_defect: OnDefect
) -> Iterator[Example]:
    content = np.frombuffer(_content(path, on_defect), dtype=np.uint8)
    if not len(content):
        raise DataError(f"'{path}' is empty; copy or download it again")
    first, last = (int(len(content) * edge) for edge in share)
    content = content[first:last]
    for start in range(0, len(content), length):
        tokens = content[start : start + length]
        labels = np.full(len(tokens), UNASKED, dtype=np.int16)
        after = content[start + 1 : start + 1 + length]
        labels[: len(after)] = after
        # The last byte of all asks for nothing; a window of it alone would be empty.
        if len(after):
            yield Example(split, (tokens,), labels)


def _content(path: Path, on_defect: OnDefect) -> bytes:
    """All of a file's text; of documents one after the other, a newline between two."""
    if not path.name.lower().endswith(".parquet"):
        return unpacked(path)
    found = []
    for row, (text,) in read_rows(path, ("text",)):
        if isinstance(text, bytes):
            found.append(text)
        else:
            on_defect(bad_row(path, row, "the text is missing; remove the row"))
    return b"\n".join(found)
