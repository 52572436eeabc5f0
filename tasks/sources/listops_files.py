"""ListOps from files: the TSV of the Long Range Arena release, or Parquet or CSV of that form.

Columns `Source`, e.g. `( ( ( [MAX 2 ) 9 ) ] )`, and `Target`, 0 ... 9. Parentheses carry no
information and are dropped. Rows are taken from the start of each file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lra.core.dataset import SPLITS, Split, SplitName
from lra.core.errors import DataError
from lra.core.protocol import Rows
from tasks.sources.files import HUB, source_files
from tasks.sources.holdout import assigned, content_key
from tasks.sources.tables import bad_row, read_label, read_rows, read_text, shown

_Example = tuple[npt.NDArray[np.uint8], int]


def read_listops(
    source: str, rows: Rows, *, length: int, ids: Mapping[str, int]
) -> dict[SplitName, Split]:
    """Read the three splits; at most `rows` of each, sequences cut on the right to `length`.

    `source` is a folder with basic_train.tsv, basic_val.tsv and basic_test.tsv (or the like in
    Parquet or CSV), one of these files, or a single file, whose rows are split by content. `ids`
    maps each token to its id. Raises `DataError` naming file, row and remedy.
    """
    if source.startswith(HUB):
        raise DataError(f"listops is not read from the hub ('{source}'); give a file or a folder")
    table = {token.encode(): value for token, value in ids.items()}
    files = source_files(source, "listops")
    if files.single is not None:
        return _by_content(files.single, rows, length, table)
    family = files.family
    if "validation" not in family:
        raise DataError(f"'{source}' has no validation split; add the file whose name says 'val'")
    found: dict[SplitName, Split] = {}
    for split in SPLITS:
        examples = (example for path in family[split] for example in _examples(path, table))
        found[split] = _split(list(islice(examples, rows.of(split))), length, family[split][0])
    return found


def _by_content(
    path: Path, rows: Rows, length: int, table: Mapping[bytes, int]
) -> dict[SplitName, Split]:
    found: dict[SplitName, list[_Example]] = {split: [] for split in SPLITS}
    for example in _examples(path, table):
        mine = found[assigned(content_key(example[0].tobytes()))]
        mine.append(example)
    return {split: _split(found[split][: rows.of(split)], length, path) for split in SPLITS}


def _split(examples: list[_Example], length: int, path: Path) -> Split:
    if not examples:
        raise DataError(f"'{path}' has no rows for one of the splits; give a file with more rows")
    return Split.of([tokens[:length] for tokens, _ in examples], [label for _, label in examples])


def _examples(path: Path, table: Mapping[bytes, int]) -> Iterator[_Example]:
    step_of = np.zeros(max(table.values()) + 1, dtype=np.int8)
    for token, value in table.items():
        step_of[value] = token.startswith(b"[") - (token == b"]")
    for row, (source, target) in read_rows(path, ("Source", "Target")):
        words = read_text(path, row, source).translate(None, b"()").split()
        try:
            tokens = np.frombuffer(bytes(map(table.__getitem__, words)), dtype=np.uint8)
        except KeyError as error:
            raise bad_row(
                path,
                row,
                f"unknown token {shown(error.args[0])} in Source; the {len(table)} known ones are "
                f"{b' '.join(table).decode()}",
            ) from error
        fault = _fault(step_of[tokens])
        if fault:
            raise bad_row(path, row, f"Source {fault}; copy the file again")
        yield tokens, read_label(path, row, target, classes=10)


def _fault(steps: npt.NDArray[np.int8]) -> str | None:
    """What keeps tokens from being one expression; a step is 1 for an operator, -1 for a `]`."""
    if not len(steps):
        return "holds no token"
    opened, closed = np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)
    if opened != closed:
        return f"has {opened} operators and {closed} ']'"
    outside = np.cumsum(steps, dtype=np.int64)[:-1] < 1
    if outside.any():
        return f"is over after token {outside.argmax() + 1} of {len(steps)}"
    if ((steps[:-1] > 0) & (steps[1:] < 0)).any():
        return "has an operator without arguments"
    return None
