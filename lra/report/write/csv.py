"""The frame as CSV: a row a figure, `n/a` where there is none or a column does not apply."""

from __future__ import annotations

import re

import pandas as pd

NO_VALUE = "n/a"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet computes."""
_NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", re.IGNORECASE)


def csv_text(figures: pd.DataFrame) -> str:
    """Return the frame as CSV; `status` and `reason` say why a value is missing.

    Whole numbers stay whole beside missing ones. A text that a spreadsheet would compute stands
    behind an apostrophe.
    """
    table = pd.DataFrame({name: _column(figures[name]) for name in figures.columns})
    return table.to_csv(index=False, na_rep=NO_VALUE, lineterminator="\n")


def _column(own: pd.Series) -> pd.Series:
    if own.dtype == object:
        known = {text: _defused(text) for text in own.unique()}
        return own.map(known).where(own != "", None)
    if own.dtype == "float64" and (own.dropna() % 1 == 0).all():
        return own.astype("Int64").astype(object).where(own.notna(), None)
    return own


def _defused(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
