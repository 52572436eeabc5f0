"""The frame as CSV: one row for each figure, `n/a` where there is none or a column does not
apply."""

from __future__ import annotations

import re

import pandas as pd

from lra.report.load.frame import public

NO_VALUE = "n/a"
_FORMULA = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
"""Beginnings of formulas in spreadsheets; full-width forms count as well in some."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def csv_text(figures: pd.DataFrame) -> str:
    """Return the frame as CSV; `status` and `reason` say why a value is missing.

    Whole numbers stay whole in columns with missing ones. A text that a spreadsheet would compute
    gets an apostrophe in front.
    """
    shown = public(figures)
    table = pd.DataFrame({name: _column(shown[name]) for name in shown.columns})
    return table.to_csv(index=False, na_rep=NO_VALUE, lineterminator="\n")


def _column(own: pd.Series) -> pd.Series:
    if own.dtype == object:
        return own.map({text: _defused(text) for text in own.dropna().unique()})
    if own.dtype == "float64" and (own.dropna() % 1 == 0).all():
        return own.astype("Int64").astype(object).where(own.notna(), None)
    return own


def _defused(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
