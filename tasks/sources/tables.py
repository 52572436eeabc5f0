"""Rows of Parquet, CSV and TSV files, plain or gzipped, with errors that name file and row.

Rows are counted from 1, a header not included. CSV has quotes, TSV has none (the form of the Long
Range Arena release). Texts are UTF-8 bytes as they stand in the file.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from lra.core.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[int, tuple[Any, ...]]
"""Row number, and the values of the columns asked for: bytes, int, float or None."""


def read_rows(
    path: Path, columns: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Iterator[Row]:
    """Yield the rows of a file, lazily; the value of an optional column that is not there is None.

    Raises `DataError` for a missing column, an empty, truncated or undecodable file.
    """
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        return _parquet(path, columns, optional)
    if name.endswith((".csv", ".tsv")):
        return _delimited(path, columns, optional, tabs=name.endswith(".tsv"))
    raise DataError(f"'{path}' is none of .parquet, .csv, .tsv; convert it to one of them")


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
        _require(name, there, columns)
        lists = []
        for column in (*columns, *optional):
            if column not in there:
                lists.append([None] * len(batch))
                continue
            values = batch.column(column)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
                values = values.cast(pa.large_binary())
            lists.append(values.to_pylist())
        for values in zip(*lists, strict=True):
            row += 1
            yield row, values


def read_text(path: Path | str, row: int, value: Any) -> bytes:
    """Return a text cell as UTF-8 bytes; `DataError` if it is missing, empty or not UTF-8."""
    if not isinstance(value, bytes):
        raise bad_row(path, row, f"the text is {_shown(value)}; write a text")
    if not value:
        raise bad_row(path, row, "the text is empty; remove the row")
    try:
        value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise bad_row(
            path, row, f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        ) from error
    return value


def read_label(path: Path | str, row: int, value: Any, classes: int) -> int:
    """Return a label cell as an integer; `DataError` unless it is 0 ... classes - 1."""
    try:
        number = float(value)
        if number.is_integer() and 0 <= number < classes:
            return int(number)
    except (TypeError, ValueError):
        pass
    raise bad_row(
        path, row, f"label {_shown(value)} is not one of 0 ... {classes - 1}; correct the row"
    )


def bad_row(path: Path | str, row: int, what: str) -> DataError:
    """Return the error for one row."""
    return DataError(f"'{path}', row {row}: {what}")


def _shown(value: Any) -> str:
    """A cell in an error: short, on one line."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return "missing" if value is None or text == "" else repr(text[:40])


def _require(name: Path | str, there: list[str], columns: tuple[str, ...]) -> None:
    for column in columns:
        if column not in there:
            raise DataError(
                f"'{name}' has no column '{column}', only {', '.join(there) or 'none'}; "
                f"rename a column to '{column}'"
            )


def _parquet(path: Path, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            there = file.schema_arrow.names
            _require(path, there, columns)
            wanted = [name for name in (*columns, *optional) if name in there]
            batches = file.iter_batches(batch_size=1024, columns=wanted)
            yield from batch_rows(str(path), batches, columns, optional)
    except (pa.ArrowException, OSError) as error:
        what = "is empty" if path.stat().st_size == 0 else "is no complete Parquet file"
        raise DataError(f"'{path}' {what}; copy or download it again") from error


def _delimited(
    path: Path, columns: tuple[str, ...], optional: tuple[str, ...], tabs: bool
) -> Iterator[Row]:
    row = 0
    try:
        with _opened(path) as stream:
            records = _tab_records(stream) if tabs else _csv_records(stream)
            first = next(records, [])
            header = [name.decode("utf-8", "replace").removeprefix("\ufeff") for name in first]
            if not header:
                raise DataError(f"'{path}' is empty; copy or download it again")
            _require(path, header, columns)
            places = [
                header.index(name) if name in header else None for name in (*columns, *optional)
            ]
            for row, record in enumerate(records, 1):
                if len(record) != len(header):
                    raise bad_row(
                        path, row, f"{len(record)} fields, the header has {len(header)}; correct it"
                    )
                yield row, tuple(None if p is None else record[p] for p in places)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"'{path}' is cut short or no gzip archive (after row {row}); copy or download it again"
        ) from error
    except csv.Error as error:
        raise bad_row(path, row + 1, f"{error}; correct the quotes, or use Parquet") from error


def _opened(path: Path) -> IO[bytes]:
    if path.name.endswith(".gz"):
        return cast(IO[bytes], gzip.GzipFile(path))
    return path.open("rb")


def _tab_records(stream: IO[bytes]) -> Iterator[list[bytes]]:
    lines = (line.rstrip(b"\r\n") for line in stream)
    return (line.split(b"\t") for line in lines if line)


def _csv_records(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """Records of a CSV file; bytes that are no UTF-8 survive to be reported with their row."""
    lines = (line.decode("utf-8", "surrogateescape") for line in stream)
    for record in csv.reader(lines, strict=True):
        if record:
            yield [field.encode("utf-8", "surrogateescape") for field in record]
