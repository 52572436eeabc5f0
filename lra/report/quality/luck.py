"""What guessing reaches by luck, and where no mechanism got beyond it or beyond counting tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lra.report.entries import Entry
from lra.report.quality.baselines import is_bag
from lra.report.quality.columns import Column
from lra.report.quality.tables import QualityTable
from lra.report.select import Selection
from lra.report.words import listing
from lra.verdict.accuracy import above_chance

Guesses = Mapping[tuple[str, str], float]
"""What the best of all constant answers has right, by data and scale."""

_LARGEST = "largest class of the test split"
"""Where a baseline's method says its share: what no guess can do better than but by luck. What is
the largest class in training, which `majority` answers, may be a smaller one there."""


def guesses(selection: Selection) -> Guesses:
    """Return what guessing has right on each task that has a baseline."""
    largest = {kept.record.id: kept.record.method.get(_LARGEST) for kept in selection.kept}
    return {
        (e.protocol, e.scale): largest[e.record] or e.value
        for e in selection.entries
        if e.kind == "baseline" and e.metric == "majority" and e.value is not None
    }


def beyond(own: Iterable[Entry], column: Column, known: Guesses) -> list[tuple[Entry, bool]]:
    """Return which of these trainings, a column's, are above what guessing reaches by luck.

    One without an accuracy is not; none is judged where the column has no baseline.
    """
    chance = known.get((column.data, column.cell.scale))
    if chance is None:
        return []
    return [
        (entry, entry.value is not None and above_chance(entry.value, chance, column.rows.test))
        for entry in own
        if entry.protocol == column.protocol
    ]


def luck_sentences(quality: QualityTable, selection: Selection) -> list[str]:
    """Return on which tasks no mechanism, of the run or the reference, got beyond luck, if any."""
    known = guesses(selection)
    accuracies = [
        e for e in selection.entries if e.metric == "test_accuracy" and e.value is not None
    ]
    found = [beyond(accuracies, column, known) for column in quality.columns]
    stuck = [
        column.title
        for column, judged in zip(quality.columns, found, strict=True)
        if judged and not any(better for _, better in judged)
    ]
    if not stuck:
        return []
    return [f"On {listing(stuck)} no mechanism beats lucky guessing."]


def bag_sentences(quality: QualityTable, selection: Selection) -> list[str]:
    """Return on which tasks no mechanism is above the bag of tokens, where that is beyond luck
    itself, if any."""
    known, rows = guesses(selection), quality.table.rows
    bag = next(filter(is_bag, rows), None)
    below = []
    for place, column in enumerate(quality.columns):
        counted = bag.cells[place].value if bag else None
        chance = known.get((column.data, column.cell.scale))
        if counted is None or chance is None:
            continue
        cells = [row.cells[place] for row in rows if row.mechanism]
        reached = [cell.value for cell in cells if cell.value is not None]
        told = above_chance(counted, chance, column.rows.test)
        if told and reached and max(reached) <= counted:
            below.append(column.title)
    if not below:
        return []
    return [
        f"On {listing(below)} no mechanism beats the bag of tokens: none shows that it reads "
        "more than how often each token occurs."
    ]
