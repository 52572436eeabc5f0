"""ListOps from files: the TSV of the Long Range Arena release, or Parquet or CSV of that form.

Columns `Source`, e.g. `( ( ( [MAX 2 ) 9 ) ] )`, and `Target`, its value. Parentheses carry no
information and are dropped. Every row read is worked out, and must be worth its target. Rows are
taken from the start of each file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError
from tasks.contract import Example, OnDefect, Part
from tasks.sources.files import source_files
from tasks.sources.holdout import assigned, content_key
from tasks.sources.listops_values import evaluate, refuse_misplaced
from tasks.sources.tables import bad_row, read_label, read_rows, read_text, shown, sound


def listops_parts(source: str, ids: Mapping[str, int]) -> Sequence[Part]:
    """Return a part for each file of a source.

    `source` is a folder with basic_train.tsv, basic_val.tsv and basic_test.tsv (or the like in
    Parquet or CSV), one of these files, or a single file, whose rows are split by content. `ids`
    maps each token to its id. Raises `DataError` naming file and remedy.
    """
    table = {token.encode(): value for token, value in ids.items()}
    files = source_files(source, "listops")
    if files.single is not None:
        return [Part(files.single.name, partial(_examples, files.single, table, None))]
    if "validation" not in files.family:
        raise DataError(f"'{source}' has no validation split; add the file whose name says 'val'")
    return [
        Part(path.name, partial(_examples, path, table, split), split)
        for split in SPLITS
        for path in files.family[split]
    ]


def _examples(
    path: Path, table: Mapping[bytes, int], split: SplitName | None, on_defect: OnDefect
) -> Iterator[Example]:
    def read(row: int, cells: tuple[object, ...]) -> Example:
        tokens, label = _worked_out(path, row, cells, table)
        return Example(split or assigned(content_key(tokens.tobytes())), (tokens,), label)

    rows = read_rows(path, ("Source", "Target"), on_defect=on_defect)
    first = next(rows, None)
    if first is None:
        raise DataError(f"'{path}' has no rows; give a file with rows")
    yield from sound(chain([first], rows), read, on_defect)


def _worked_out(
    path: Path, row: int, cells: tuple[object, ...], table: Mapping[bytes, int]
) -> tuple[npt.NDArray[np.uint8], int]:
    """The tokens and label of a row; `DataError` unless one is worth the other."""
    source, target = cells
    text = read_text(path, row, source)
    words = text.translate(None, b"()").split()
    try:
        tokens = np.frombuffer(bytes(map(table.__getitem__, words)), dtype=np.uint8)
    except KeyError as error:
        raise bad_row(
            path,
            row,
            f"unknown token {shown(error.args[0])} in Source; the {len(table)} known ones are "
            f"{b' '.join(table).decode()}",
        ) from error
    try:
        value = evaluate(words)
        refuse_misplaced(text)
    except ValueError as error:
        raise bad_row(path, row, f"Source {error}; copy the file again") from error
    label = read_label(path, row, target, classes=10)
    if label != value:
        raise bad_row(path, row, f"Target is {label}, the value of Source is {value}; correct it")
    return tokens, label
