"""ListOps from files: the TSV of the Long Range Arena release, or Parquet or CSV of that form.

Columns `Source`, e.g. `( ( ( [MAX 2 ) 9 ) ] )`, and `Target`, its value. Parentheses carry no
information and are dropped. Every row read is worked out, and must be worth its target. Rows are
taken from the start of each file.
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
from tasks.sources.listops_values import evaluate
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
    for row, (source, target) in read_rows(path, ("Source", "Target")):
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
        except ValueError as error:
            raise bad_row(path, row, f"Source {error}; copy the file again") from error
        opened, closed = text.count(b"("), text.count(b")")
        if opened != closed:
            reason = f"Source has {opened} '(' and {closed} ')'; copy the file again"
            raise bad_row(path, row, reason)
        label = read_label(path, row, target, classes=10)
        if label != value:
            reason = f"Target is {label}, the value of Source is {value}; correct it"
            raise bad_row(path, row, reason)
        yield tokens, label
