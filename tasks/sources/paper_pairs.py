"""Pairs of papers with a label each: does one cite the other?

The form of the Long Range Arena release, a TSV a split without a header: label, id1, id2, text1,
text2; or tables of pairs (`label`, `id1`, `id2`, perhaps `split`) and of papers (`id`, `text`) in
Parquet, CSV or TSV. Pairs come in the order of their files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lra.core.dataset import SplitName
from lra.core.errors import DataError
from tasks.contract import Example, OnDefect, Part
from tasks.sources.pair_files import pair_files
from tasks.sources.tables import (
    ABSENT,
    Row,
    bad_row,
    document_tokens,
    read_label,
    read_rows,
    read_split,
    read_text,
    shown,
    sound,
)

_COLUMNS = ("label", "id1", "id2")
_MAY_BE = ("text1", "text2", "split")
_BARE = (_COLUMNS, (*_COLUMNS, "text1", "text2"))
"""The columns of a TSV without a header, as the release has them."""
_OPEN_ENDED = ("id1", "id2", "text1", "text2")
_CLASSES = 2


def paper_pair_parts(source: str) -> Sequence[Part]:
    """Return a part for each file of pairs; see `tasks.sources.pair_files` for their names.

    A table of papers is held in memory, pairs are not. Raises `DataError` naming file and remedy.
    """
    found = pair_files(source)
    papers = _Papers(found.papers)
    return [
        Part(path.name, partial(_examples, path, split, papers), split)
        for split, path in found.pairs
    ]


class _Papers:
    """The texts of papers by id, read when they are first needed."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._texts: dict[bytes, bytes | None] = {}
        self._read = self._broken = False

    def there(self, pairs: Path, on_defect: OnDefect) -> bool:
        """Read the table unless that was done; False where it is broken, which is told once.

        `DataError` where the pairs have none.
        """
        if self._path is None:
            raise DataError(
                f"'{pairs}' has no texts; add a table of papers beside it, papers.parquet, .csv or "
                f".tsv with columns id and text"
            )
        if not self._read:
            self._read = True
            try:
                self._texts = _read_papers(self._path, on_defect)
            except DataError as defect:
                self._broken = True
                on_defect(defect)
        return not self._broken

    def text(self, pairs: Path, row: int, identity: bytes) -> bytes | None:
        """Return the text of a paper, None where its own row was told as a defect; `DataError`
        where there is none."""
        if identity not in self._texts:
            table = "the table of papers" if self._path is None else f"'{self._path.name}'"
            what = f"paper {shown(identity)} has no text in {table}; add it, or remove the row"
            raise bad_row(pairs, row, what)
        return self._texts[identity]


def _read_papers(path: Path, on_defect: OnDefect) -> dict[bytes, bytes | None]:
    found: dict[bytes, bytes | None] = {}

    def read(row: int, cells: tuple[Any, ...]) -> None:
        name = _identity(path, row, "id", cells[0])
        try:
            content = read_text(path, row, cells[1])
        except DataError:
            found.setdefault(name, None)
            raise
        if found.get(name) is None:
            found[name] = content
        elif found[name] != content:
            what = f"paper {shown(name)} is there already with another text; keep one"
            raise bad_row(path, row, what)

    columns = ("id", "text")
    rows = read_rows(path, columns, open_ended=columns, on_defect=on_defect)
    for _ in sound(rows, read, on_defect):
        pass
    return found


def _examples(
    path: Path, given: SplitName | None, papers: _Papers, on_defect: OnDefect
) -> Iterator[Example]:
    defects = 0

    def tell(defect: DataError) -> None:
        nonlocal defects
        defects += 1
        on_defect(defect)

    def document(row: int, column: str, identity: Any, text: Any) -> bytes | None:
        if text is not ABSENT:
            return read_text(path, row, text)
        return papers.text(path, row, _identity(path, row, column, identity))

    def read(row: int, cells: tuple[Any, ...]) -> Example | None:
        label, id1, id2, text1, text2, word = cells
        split = given or read_split(path, row, word)
        one, two = document(row, "id1", id1, text1), document(row, "id2", id2, text2)
        known = read_label(path, row, label, _CLASSES)
        if one is None or two is None:
            return None
        return Example(split, (document_tokens(one), document_tokens(two)), known)

    def complete() -> Iterator[Row]:
        """The rows, as far as their texts and splits are there: absent from all or from none."""
        for row, cells in read_rows(
            path, _COLUMNS, _MAY_BE, bare=_BARE, open_ended=_OPEN_ENDED, on_defect=tell
        ):
            if ABSENT in cells[3:5] and not papers.there(path, tell):
                return
            if given is None and cells[5] is ABSENT:
                raise DataError(
                    f"'{path}' has no column 'split'; add one with train, validation or test, or "
                    f"give a file for each"
                )
            yield row, cells

    splits: set[SplitName] = set()
    for example in filter(None, sound(complete(), read, tell)):
        splits.add(example.split)
        yield example
    # Where rows have defects, a split without a pair is what comes of them.
    if given is None and "validation" not in splits and not defects:
        raise DataError(
            f"'{path}' has no pair for validation; write 'validation' in the column 'split' of "
            f"some training pairs"
        )


def _identity(path: Path, row: int, column: str, value: Any) -> bytes:
    """An id as bytes, however its column has it."""
    written = "" if value is None else f"{value}"
    name = value.strip() if isinstance(value, bytes) else written.encode()
    if not name:
        raise bad_row(path, row, f"{column} is missing; write the paper's id")
    return name
