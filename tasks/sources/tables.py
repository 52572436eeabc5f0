"""Rows of Parquet, CSV and TSV files, plain or gzipped, with errors that name file and row.

Rows are counted from 1, a header not included. CSV has quotes, TSV has none (the form of the Long
Range Arena release). Texts are UTF-8 bytes as they stand in the file.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from lra.core.dataset import SplitName
from lra.core.errors import DataError
from tasks.contract import OnDefect, refuse
from tasks.sources.delimited import (
    csv_records,
    damage,
    has_last_line_end,
    lines_of,
    opened,
    parted_by,
    tab_records,
    with_last,
)
from tasks.sources.files import SPLIT_WORDS, unreadable

if TYPE_CHECKING:
    import pyarrow as pa

_Cells = TypeVar("_Cells")
_Read = TypeVar("_Read")

Row = tuple[int, tuple[Any, ...]]
"""Row number, and the values of the columns asked for: bytes, int, float, None or `ABSENT`."""

ABSENT = object()
"""The value of an optional column that is not there; that of an empty cell is None or b""."""

_WHOLE = re.compile(rb"-?\d+(\.0*)?")
_NAMES_SHOWN = 10


def read_rows(
    path: Path,
    columns: tuple[str, ...],
    optional: tuple[str, ...] = (),
    *,
    bare: Sequence[tuple[str, ...]] = (),
    open_ended: Collection[str] = (),
    on_defect: OnDefect = refuse,
) -> Iterator[Row]:
    """Yield the rows of a file, lazily; that of an optional column not there is `ABSENT`.

    `bare` names the columns of a TSV without a header, for each number of fields it may have (the
    last where it has another). `open_ended` names columns of which half a value may be one, such as
    a text: a TSV in which one of them is the last must end its last line. A row that does not, or
    has more or fewer fields, goes to `on_defect`. Raises `DataError` for a column that is missing
    or there twice, an empty, truncated, unreadable or undecodable file.
    """
    name = path.name.lower()
    if name.endswith(".parquet"):
        return _parquet(path, columns, optional)
    name = name.removesuffix(".gz")
    if name.endswith((".csv", ".tsv")):
        tabs = name.endswith(".tsv")
        return _delimited(path, columns, optional, tabs, bare, open_ended, on_defect)
    raise DataError(
        f"'{path}' is none of .parquet, .csv, .tsv, .csv.gz, .tsv.gz; convert it to one of them"
    )


def batch_rows(
    name: str,
    batches: Iterable[pa.RecordBatch],
    columns: tuple[str, ...],
    optional: tuple[str, ...] = (),
) -> Iterator[Row]:
    """Yield the rows of Arrow batches; `name` is what errors call them."""
    import pyarrow as pa

    row = 0
    for batch in batches:
        there = batch.schema.names
        _require(name, there, columns, optional)
        lists = []
        for column in (*columns, *optional):
            if column not in there:
                lists.append([ABSENT] * len(batch))
                continue
            values = batch.column(column)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            if values.type in (pa.string(), pa.large_string(), pa.string_view()):
                values = values.cast(pa.large_binary())
            lists.append(values.to_pylist())
        for values in zip(*lists, strict=True):
            row += 1
            yield row, values


def sound(
    rows: Iterable[tuple[int, _Cells]], read: Callable[[int, _Cells], _Read], on_defect: OnDefect
) -> Iterator[_Read]:
    """Yield each row as `read` returns it; one that it refuses goes to `on_defect`."""
    for row, cells in rows:
        try:
            found = read(row, cells)
        except DataError as defect:
            on_defect(defect)
        else:
            yield found


DOCUMENT_VOCABULARY = 257
"""Bytes, and 0 for padding."""


def document_tokens(text: bytes) -> npt.NDArray[np.uint16]:
    """Return a document as token ids 1 ... 256, (bytes,): its bytes plus 1, as 0 is padding."""
    return np.frombuffer(text, dtype=np.uint8).astype(np.uint16) + np.uint16(1)


def printed_by_python(tokens: npt.NDArray[np.integer]) -> bool:
    """Return whether a document is written as Python prints bytes: `b'...'` or `b"..."`."""
    first, last = (
        bytes((tokens[:2] - 1).astype(np.uint8)),
        bytes((tokens[-1:] - 1).astype(np.uint8)),
    )
    return len(tokens) > 2 and first in (b"b'", b'b"') and last == first[1:]


def read_text(path: Path | str, row: int, value: Any) -> bytes:
    """Return a text cell as UTF-8 bytes; `DataError` if it is missing, blank or not UTF-8."""
    if not isinstance(value, bytes):
        raise bad_row(path, row, f"the text is {shown(value)}; write a text")
    if not value:
        raise bad_row(path, row, "the text is empty; remove the row")
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise bad_row(
            path, row, f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        ) from error
    if text.isspace():
        raise bad_row(path, row, "the text is blank; remove the row")
    return value


def read_label(path: Path | str, row: int, value: Any, classes: int) -> int:
    """Return a label cell as an integer; `DataError` unless it is 0 ... classes - 1."""
    written = value.strip() if isinstance(value, bytes) else b"0"
    try:
        number = float(value)
        if _WHOLE.fullmatch(written) and number.is_integer() and 0 <= number < classes:
            return int(number)
    except (TypeError, ValueError):
        pass
    told = f"label {shown(value)} is not one of 0 ... {classes - 1}"
    if written.strip(b"\"'").decode("utf-8", "replace")[:1].isalpha():
        what = f"{told}; where labels are words, write a number for each word"
        raise bad_row(path, row, what, once=f"{path}: labels are words")
    raise bad_row(path, row, f"{told}; correct the row")


def read_split(path: Path | str, row: int, value: Any) -> SplitName:
    """Return the split that a cell names; `DataError` where it names none."""
    name = value.decode("utf-8", "replace").strip().lower() if isinstance(value, bytes) else ""
    if name not in SPLIT_WORDS:
        raise bad_row(
            path, row, f"split {shown(value)} is none of train, validation, test; correct it"
        )
    return SPLIT_WORDS[name]


def bad_row(path: Path | str, row: int, what: str, *, once: str = "") -> DataError:
    """Return the error for one row; `once` as `DataError` has it."""
    return DataError(f"'{path}', row {row}: {what}", once=once)


def shown(value: Any) -> str:
    """Return a cell as errors show it: short, on one line."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return "missing" if value is None or text == "" else repr(text[:40])


def _require(
    name: Path | str, there: list[str], columns: tuple[str, ...], optional: tuple[str, ...]
) -> None:
    """Refuse columns that are missing, or there more than once."""
    for column in columns:
        if column not in there:
            only = [repr(other[:40])[1:-1] for other in there[:_NAMES_SHOWN]] or ["none"]
            if len(there) > _NAMES_SHOWN:
                only.append(f"{len(there) - _NAMES_SHOWN} more")
            raise DataError(
                f"'{name}' has no column '{column}', only {', '.join(only)}; "
                f"rename a column to '{column}'"
            )
    for column in (*columns, *optional):
        if there.count(column) > 1:
            raise DataError(
                f"'{name}' has {there.count(column)} columns '{column}'; rename all but one"
            )


def _parquet(path: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            try:
                there = list(file.schema_arrow.names)
            except UnicodeDecodeError as error:
                what = "has a column whose name is not UTF-8; rename the column"
                raise DataError(f"'{path}' {what}") from error
            _require(path, there, columns, optional)
            wanted = [name for name in (*columns, *optional) if name in there]
            batches = file.iter_batches(batch_size=1024, columns=wanted)
            yield from batch_rows(str(path), batches, columns, optional)
    except (pa.ArrowException, OSError) as error:
        # Damage inside a file is an OSError too, but without a number.
        if isinstance(error, OSError) and error.errno:
            raise unreadable(path, error) from error
        what = "is empty" if path.stat().st_size == 0 else "is no complete Parquet file"
        raise DataError(f"'{path}' {what}; copy or download it again") from error


def _delimited(
    path: Path,
    columns: tuple[str, ...],
    optional: tuple[str, ...],
    tabs: bool,
    bare: Sequence[tuple[str, ...]],
    open_ended: Collection[str],
    on_defect: OnDefect,
) -> Iterator[Row]:
    row = 0
    try:
        with opened(path) as stream:
            lines = lines_of(path, stream)
            lines = parted_by(path, lines, columns, b"\t" if tabs else b",")
            records = tab_records(lines) if tabs else csv_records(lines)
            first = next(records, [])
            header = [name.decode("utf-8", "replace") for name in first]
            bared = tabs and bool(bare) and columns[0] not in header
            if header and bared:
                header = list(next((b for b in bare if len(b) == len(first)), bare[-1]))
                records = chain([first], records)
            if not header:
                raise DataError(f"'{path}' is empty; copy or download it again")
            _require(path, header, columns, optional)
            places = [
                header.index(name) if name in header else None for name in (*columns, *optional)
            ]
            may_be_cut = tabs and header[-1] in open_ended and not has_last_line_end(path)
            for row, (record, last) in enumerate(with_last(records, may_be_cut), 1):
                if last:
                    what = "the line has no end; copy the file again, or add one if it is whole"
                    on_defect(bad_row(path, row, what))
                elif len(record) == len(header):
                    yield row, tuple(ABSENT if p is None else record[p] for p in places)
                elif bared and len(record) == 1:
                    # Where something else parts the fields, every row has this fault.
                    what = "it has no tab; put tabs between the fields"
                    on_defect(bad_row(path, row, what, once=f"{path}: no tabs"))
                else:
                    due = f"not {len(header)}" if bared else f"the header has {len(header)}"
                    on_defect(bad_row(path, row, f"{len(record)} fields, {due}; correct it"))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"'{path}' {damage(path, error)} (after row {row}); copy or download it again"
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error
    except csv.Error as error:
        raise bad_row(
            path,
            row + 1,
            f"{error}; correct quotes and line ends (LF or CRLF), or use Parquet (what follows was "
            f"not read)",
        ) from error
