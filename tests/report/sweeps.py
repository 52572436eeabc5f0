"""Sweeps of timings over length, and what a report makes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from lra.core.records import Record
from lra.report.analysis import Analysis, Assumptions
from lra.report.assemble import analyse
from lra.report.load.select import join
from lra.report.model import Figure, Section, Table, Value
from report.sample import efficiency

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
OLD = "2026-11-01T00:00:00Z"
"""When committed records were taken."""


def swept(
    name: str,
    law: Callable[[int], float],
    *,
    lengths: Sequence[int] = LENGTHS,
    room: Callable[[int], float] = lambda n: 1e3 * n,
    mode: str = "train",
    **fields: Any,
) -> list[Record]:
    """Times in nanoseconds and sizes in bytes by length."""
    return [efficiency(name, n, mode, 1e-9 * law(n), room(n), **fields) for n in lengths]


def ended(
    name: str, status: Any, *lengths: int, mode: str = "train", **fields: Any
) -> list[Record]:
    """Calls that ended otherwise."""
    return [efficiency(name, n, mode, status=status, **fields) for n in lengths]


def exact(**fields: Any) -> list[Record]:
    """Exact attention, quadratic."""
    return swept("sdpa", lambda n: n**2.0, **fields)


def analysed(
    records: Sequence[Record],
    reference: Sequence[Record] = (),
    assumed: Assumptions | None = None,
) -> Analysis:
    """The analysis of a run and its reference."""
    return analyse(join(list(records), list(reference)), assumed)


def tables(sections: Sequence[Section]) -> dict[str, Table]:
    """All tables by id; no two share one."""
    found = [table for section in sections for table in section.tables]
    assert len({table.id for table in found}) == len(found)
    return {table.id: table for table in found}


def value(table: Table, row: str, column: str) -> Value:
    """One place of a table."""
    (found,) = (one for one in table.rows if one.title == row)
    return found.values[table.columns.index(column)]


def titles(table: Table) -> list[str]:
    """The rows of a table."""
    return [row.title for row in table.rows]


def texts(figure: Figure) -> list[str]:
    """The words of a drawing."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", figure.svg)
