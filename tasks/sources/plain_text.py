"""Running text for language modelling: text files, plain or gzipped, or Parquet with documents.

A folder's files belong to the split that a word of their name says (wiki.train.txt.gz). A single
file is cut in three where it stands, as enwik8 usually is: the first nine tenths to train on, the
next twentieth to validate, the last to test.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from lra.core.dataset import SPLITS, UNASKED, SplitName
from lra.core.errors import DataError
from tasks.contract import Example, OnDefect, Part
from tasks.sources.files import SPLIT_WORDS, existing, readable, unreadable
from tasks.sources.tables import bad_row, read_rows

_KINDS = (".txt", ".txt.gz", ".parquet")
_CUTS: dict[SplitName, tuple[float, float]] = {
    "train": (0.0, 0.9),
    "validation": (0.9, 0.95),
    "test": (0.95, 1.0),
}


def text_parts(source: str, length: int) -> Sequence[Part]:
    """Return a part for each split of a file, or for each file of a folder.

    Examples are windows of `length` bytes, one after the other; each byte's label is the next one.
    """
    path = existing(source)
    if path.is_file():
        return [
            Part(f"{path.name}, {split}", _windows(path, _CUTS[split], split, length), split)
            for split in SPLITS
        ]
    with readable(path):
        files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    named = [(file, found) for file in files if (found := _named(file)) is not None]
    by_split = [(split, file) for file, (_, split) in named]
    if len({text for _, (text, _) in named}) > 1:
        examples = ", ".join({text: file.name for file, (text, _) in named}.values())
        raise DataError(
            f"folder '{source}' holds several texts ({examples}); "
            f"give each a folder of its own, or name a file"
        )
    for needed in SPLITS:
        if needed not in dict(by_split):
            raise DataError(
                f"folder '{source}' has no text for {needed}; add a file (.txt, .txt.gz or "
                f".parquet) with '{needed}' in its name, or name a single file"
            )
    return [
        Part(file.name, _windows(file, (0.0, 1.0), split, length), split)
        for wanted in SPLITS
        for split, file in by_split
        if split == wanted
    ]


def _named(file: Path) -> tuple[str, SplitName] | None:
    """What text a file is of, and of which split: what stands before the last word that says one,
    and this word. None where none does."""
    name = file.name.lower()
    kind = next((kind for kind in _KINDS if name.endswith(kind)), None)
    if kind is None:
        return None
    words = re.split(r"[^a-z0-9]+", name.removesuffix(kind))
    places = [place for place, word in enumerate(words) if word in SPLIT_WORDS]
    if not places:
        return None
    return " ".join(words[: places[-1]]), SPLIT_WORDS[words[places[-1]]]


def _windows(
    path: Path, share: tuple[float, float], split: SplitName, length: int
) -> Callable[[OnDefect], Iterable[Example]]:
    def examples(on_defect: OnDefect) -> Iterator[Example]:
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

    return examples


def _content(path: Path, on_defect: OnDefect) -> bytes:
    """All of a file's text; of documents one after the other, a newline between two."""
    name = path.name.lower()
    if name.endswith(".parquet"):
        found = []
        for row, (text,) in read_rows(path, ("text",)):
            if isinstance(text, bytes):
                found.append(text)
            else:
                on_defect(bad_row(path, row, "the text is missing; remove the row"))
        return b"\n".join(found)
    try:
        if name.endswith(".gz"):
            with gzip.open(path) as stream:
                return stream.read()
        return path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        what = "is cut short" if isinstance(error, EOFError) else "is no whole gzip archive"
        raise DataError(f"'{path}' {what}; copy or download it again") from error
    except OSError as error:
        raise unreadable(path, error) from error
