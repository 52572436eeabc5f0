"""The entries as a data frame and as CSV: one metric of one cell per row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import msgspec

from lra.report.entries import Entry
from lra.report.versions import text
from lra.report.words import NO_VALUE

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
"""Beginnings of what spreadsheets compute; wide forms count as well for some."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def frame(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return one row per entry, its fields as columns; None where a field does not apply."""
    return _table(_rows(entries))


def _rows(entries: Sequence[Entry]) -> list[list[object]]:
    return [
        [
            text(value) if isinstance(value, tuple) else value if value != "" else None
            for value in msgspec.structs.astuple(e)
        ]
        for e in entries
    ]


def _table(rows: list[list[object]]) -> pd.DataFrame:
    """Objects as they are: whole numbers beside missing ones stay whole."""
    import pandas as pd

    names = [field.name for field in msgspec.structs.fields(Entry)]
    return pd.DataFrame(rows, columns=names, dtype=object)


def typed(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return the same with numbers as numbers, whatever the entries hold: NaN where there is none.

    Whole numbers that a row may lack are floats, too. Texts stay objects, None where there is none.
    """
    import pandas as pd

    table = frame(entries)
    for field in msgspec.structs.fields(Entry):
        kinds = set(get_args(field.type) or (field.type,))
        if kinds == {int}:
            table[field.name] = table[field.name].astype("int64")
        elif kinds & {int, float}:
            table[field.name] = pd.to_numeric(table[field.name]).astype("float64")
    return table


def csv_text(entries: Sequence[Entry]) -> str:
    """Return the entries as CSV; `n/a` stands for what was not measured or does not apply.

    The columns `word` and `reason` say why a value is missing; pandas reads `n/a` as NaN. A text
    that a spreadsheet would compute stands behind an apostrophe.
    """
    rows = [[_defused(field) for field in row] for row in _rows(entries)]
    return _table(rows).to_csv(index=False, na_rep=NO_VALUE, lineterminator="\n")


def _defused(field: object) -> object:
    """A text as no formula: as it is, unless a spreadsheet would take it for one."""
    if not isinstance(field, str) or not field.startswith(_FORMULA) or _NUMBER.fullmatch(field):
        return field
    return f"'{field}"
