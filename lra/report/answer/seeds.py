"""How many seeds an accuracy is of, and where their mean lies, in the sentences to read first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from lra.report.entries import Entry
from lra.report.quality.columns import Column
from lra.report.quality.intervals import interval_table
from lra.report.quality.tables import QualityTable
from lra.report.select import Selection
from lra.report.table import Row, Table

ONE = "one seed"


class Seeds(msgspec.Struct, frozen=True):
    """What an accuracy table is made of."""

    accuracies: tuple[Entry, ...]
    intervals: Table | None
    """None where no row has two seeds."""

    def told(self, row: Row, columns: Sequence[Column], place: int) -> str:
        """Return `84.3 to 87.6, 3 seeds` or `one seed, 1 OOM` of what a row has in a place, which
        is the mean over these columns."""
        own = [e for e in self.accuracies if (e.origin, e.label) == (row.origin, row.variant)]
        trained = [[e for e in own if e.protocol == column.protocol] for column in columns]
        numbers = [sum(e.value is not None for e in found) for found in trained]
        low, high = min(numbers), max(numbers)
        seeds = f"{low} to {high} seeds" if low < high else f"{low} seeds" if low > 1 else ONE
        bounds = self.intervals and self.intervals.row(row.variant, row.origin)
        cell = bounds and bounds.cells[place]
        failed = Counter(e.word for found in trained for e in found if e.value is None)
        return ", ".join(
            [
                *([cell.text] if cell and cell.value is not None else []),
                seeds,
                *(f"{number} {word}" for word, number in sorted(failed.items())),
            ]
        )


def seeds_of(quality: QualityTable, selection: Selection) -> Seeds:
    """Return the seeds of an accuracy table."""
    accuracies = tuple(e for e in selection.entries if e.metric == "test_accuracy")
    return Seeds(accuracies, interval_table(quality, selection))
