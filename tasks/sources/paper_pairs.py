"""Pairs of papers with a label each: does one cite the other?

The form of the Long Range Arena release, a TSV a split without a header: label, id1, id2, text1,
text2; or tables of pairs (`label`, `id1`, `id2`, perhaps `split`) and of papers (`id`, `text`) in
Parquet, CSV or TSV. Pairs come in the order of their files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lra.core.dataset import SplitName
from lra.core.errors import DataError
from tasks.contract import Example, OnDefect, Part
from tasks.sources.documents import document_tokens
from tasks.sources.files import SPLIT_WORDS
from tasks.sources.pair_files import pair_files
from tasks.sources.tables import ABSENT, bad_row, read_label, read_rows, read_text, shown

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
    return [Part(path.name, _examples(path, split, papers), split) for split, path in found.pairs]


class _Papers:
    """The texts of papers by id, read when they are first needed."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._texts: dict[bytes, bytes] | None = None
        self._broken = False

    def there(self, pairs: Path, on_defect: OnDefect) -> bool:
        """Read the table unless that was done; False where it is broken, which is told once.

        `DataError` where the pairs have none.
        """
        if self._path is None:
            raise DataError(
                f"'{pairs}' has no texts; add a table of papers beside it, papers.parquet, .csv or "
                f".tsv with columns id and text"
            )
        if self._texts is None and not self._broken:
            try:
                self._texts = _read_papers(self._path, on_defect)
            except DataError as defect:
                self._broken = True
                on_defect(defect)
        return not self._broken

    def text(self, pairs: Path, row: int, identity: bytes) -> bytes:
        """Return the text of a paper; `DataError` where there is none."""
        if self._path is None or self._texts is None or identity not in self._texts:
            table = "the table of papers" if self._path is None else f"'{self._path.name}'"
            raise bad_row(
                pairs,
                row,
                f"paper {shown(identity)} has no text in {table}; add it, or remove the row",
            )
        return self._texts[identity]


def _read_papers(path: Path, on_defect: OnDefect) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    columns = ("id", "text")
    rows = read_rows(path, columns, open_ended=columns, on_defect=on_defect)
    for row, (identity, text) in rows:
        try:
            name, content = _identity(path, row, "id", identity), read_text(path, row, text)
            if found.setdefault(name, content) != content:
                raise bad_row(
                    path, row, f"paper {shown(name)} is there already with another text; keep one"
                )
        except DataError as defect:
            on_defect(defect)
    return found


def _examples(
    path: Path, given: SplitName | None, papers: _Papers
) -> Callable[[OnDefect], Iterable[Example]]:
    def examples(on_defect: OnDefect) -> Iterator[Example]:
        splits: set[SplitName] = set()
        rows = read_rows(
            path, _COLUMNS, _MAY_BE, bare=_BARE, open_ended=_OPEN_ENDED, on_defect=on_defect
        )
        for row, (label, id1, id2, text1, text2, word) in rows:
            # Texts are absent from all rows or from none.
            if (text1 is ABSENT or text2 is ABSENT) and not papers.there(path, on_defect):
                return
            if given is None and word is ABSENT:
                raise DataError(
                    f"'{path}' has no column 'split'; add one with train, validation or test, or "
                    f"give a file for each"
                )
            try:
                split = given or _split_of(path, row, word)
                tokens = tuple(
                    document_tokens(
                        papers.text(path, row, _identity(path, row, name, identity))
                        if text is ABSENT
                        else read_text(path, row, text)
                    )
                    for name, identity, text in (("id1", id1, text1), ("id2", id2, text2))
                )
                example = Example(split, tokens, read_label(path, row, label, _CLASSES))
            except DataError as defect:
                on_defect(defect)
                continue
            splits.add(split)
            yield example
        if given is None and "validation" not in splits:
            raise DataError(
                f"'{path}' has no pair for validation; write 'validation' in the column 'split' of "
                f"some training pairs"
            )

    return examples


def _split_of(path: Path, row: int, word: Any) -> SplitName:
    name = word.decode("utf-8", "replace").strip().lower() if isinstance(word, bytes) else ""
    if name not in SPLIT_WORDS:
        raise bad_row(
            path, row, f"split {shown(word)} is none of train, validation, test; correct it"
        )
    return SPLIT_WORDS[name]


def _identity(path: Path, row: int, column: str, value: Any) -> bytes:
    """An id as bytes, however its column has it."""
    name = (
        value.strip() if isinstance(value, bytes) else b"" if value is None else f"{value}".encode()
    )
    if not name:
        raise bad_row(path, row, f"{column} is missing; write the paper's id")
    return name
