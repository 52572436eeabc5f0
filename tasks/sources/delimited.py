"""Lines and records of CSV and TSV files, plain or gzipped, as bytes."""

from __future__ import annotations

import codecs
import csv
import gzip
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, cast

from lra.core.errors import DataError

_LONGEST_FIELD = 2**31 - 1
_GZIP = b"\x1f\x8b"
"""How a gzip archive begins."""
_PARTS = {b";": "semicolons", b"\t": "tabs", b",": "commas", b"|": "vertical bars"}
"""Characters between the fields of a line, in words."""


def damage(path: Path, error: Exception) -> str:
    """Return what is wrong with a gzip archive that does not open to its end."""
    if isinstance(error, gzip.BadGzipFile) and str(error).startswith("Not a gzipped file"):
        with path.open("rb") as stream:
            begins = stream.read(len(_GZIP)) == _GZIP
        return "has bytes after the end of its gzip archive" if begins else "is no gzip archive"
    return "is cut short" if isinstance(error, EOFError) else "is damaged"


def opened(path: Path) -> IO[bytes]:
    """Return a file's bytes, unpacked if its name says that they are packed."""
    if path.name.lower().endswith(".gz"):
        return cast(IO[bytes], gzip.GzipFile(path))
    return path.open("rb")


def lines_of(path: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines without a byte order mark.

    `DataError` where the first shows UTF-16 or line ends CR alone. A NUL or a CR within a text, as
    texts from PDFs have them, is none of these.
    """
    first = stream.readline().removeprefix(codecs.BOM_UTF8)
    # A file begins with a column's name or a label: in UTF-16, one of two bytes is NUL.
    wide = first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in first[:2]
    if wide or (b"\r" in first and not first.endswith(b"\n")):
        raise DataError(
            f"'{path}' is not UTF-8 text with line ends LF or CRLF; save the file in that form"
        )
    yield first
    yield from stream


def parted_by(
    path: Path, lines: Iterator[bytes], columns: Sequence[str], due: bytes
) -> Iterator[bytes]:
    """Return the lines; `DataError` where the first names the columns with a character between
    them that is not the one due."""
    first = next(lines, b"")
    wanted = {name.encode() for name in columns}
    for part, word in _PARTS.items():
        parted = {name.strip().strip(b"\"'") for name in first.split(part)}
        if part != due and len(parted) > 1 and wanted <= parted:
            raise DataError(
                f"'{path}' has {word} between its fields; save it with {_PARTS[due]} between them"
            )
    return chain([first], lines)


def has_last_line_end(path: Path) -> bool:
    """Whether a file's last line has an end; an archive that is cut says so itself."""
    if path.name.lower().endswith(".gz"):
        return True
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read() == b"\n"


def tab_records(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Return the fields of each line that is not empty; tabs part them, and nothing is quoted."""
    stripped = (line.rstrip(b"\r\n") for line in lines)
    return (line.split(b"\t") for line in stripped if line)


def with_last(records: Iterator[list[bytes]], wanted: bool) -> Iterator[tuple[list[bytes], bool]]:
    """Yield each record and whether it is the last; none is said to be where that is not wanted,
    and so none is read ahead."""
    if not wanted:
        yield from ((record, False) for record in records)
        return
    record = next(records, None)
    while record is not None:
        following = next(records, None)
        yield record, following is None
        record = following


def csv_records(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the records of a CSV file; bytes that are no UTF-8 survive, to be told by row."""
    csv.field_size_limit(_LONGEST_FIELD)
    decoded = (line.decode("utf-8", "surrogateescape") for line in lines)
    for record in csv.reader(decoded, strict=True):
        if record:
            yield [field.encode("utf-8", "surrogateescape") for field in record]
