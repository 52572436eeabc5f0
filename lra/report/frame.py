"""The entries as a data frame and as CSV: one metric of one cell per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from lra.report.entries import Entry
from lra.report.words import NO_VALUE

if TYPE_CHECKING:
    import pandas as pd


def frame(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return one row per entry, its fields as columns; None where a field does not apply."""
    import pandas as pd

    names = [field.name for field in msgspec.structs.fields(Entry)]
    rows = [
        [value if value != "" else None for value in msgspec.structs.astuple(e)] for e in entries
    ]
    return pd.DataFrame(rows, columns=names, dtype=object)


def csv_text(entries: Sequence[Entry]) -> str:
    """Return the entries as CSV; `n/a` stands for what was not measured or does not apply.

    The columns `word` and `reason` say why a value is missing; pandas reads `n/a` as NaN.
    """
    return frame(entries).to_csv(index=False, na_rep=NO_VALUE, lineterminator="\n")
