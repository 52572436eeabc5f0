"""Intervals of accuracies and of bits per byte: where the mean over seeds may lie, by task."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from lra.report.entries import Entry
from lra.report.quality.columns import Column
from lra.report.quality.score import ACCURACY, BITS, Score
from lra.report.quality.tables import QualityTable
from lra.report.rows import row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Table
from lra.report.words import NO_VALUE, NOT_RUN, listing

_Seeds = dict[int, float]


def interval_table(quality: QualityTable, selection: Selection) -> Table | None:
    """Return the interval of each figure of a table; None where nothing has two seeds."""
    protocols = {column.protocol for column in quality.columns}
    score = quality.score
    group = [e for e in selection.entries if e.metric == score.metric and e.protocol in protocols]
    averaged, rows = quality.averaged, []
    for own in shown(group).values():
        cells = [_cell(own, column, score) for column in quality.columns]
        cells += [_mean(own, averaged)] if averaged else []
        if any(cell.value is not None for cell in cells):
            rows.append(row(own, cells))
    if not rows:
        return None
    bits = score == BITS
    return Table(
        id=f"interval-{quality.number}",
        title=f"Intervals of the {'bits per byte' if bits else 'accuracies'} {quality.where}",
        caption=f"{'Bits per byte' if bits else 'Percent of test rows'}: the 95 % interval of the "
        "mean over seeds.",
        corner="mechanism",
        columns=quality.table.columns,
        rows=tuple(rows),
        notes=(
            "Student's, over n seeds, each interval by itself and "
            f"{'not below 0' if bits else 'within 0 and 100 %'}: of seeds alone, on these test "
            "rows. Rows of one seed have none and are left out.",
        ),
    )


def _seeds(own: Sequence[Entry], column: Column) -> _Seeds:
    return {
        e.seed or 0: e.value for e in own if e.protocol == column.protocol and e.value is not None
    }


def _cell(own: Sequence[Entry], column: Column, score: Score) -> Cell:
    seeds = _seeds(own, column)
    if not seeds:
        words = sorted({e.word for e in own if e.protocol == column.protocol})
        return Cell(listing(words) or NOT_RUN)
    return _told(list(seeds.values()), column.rows.test, score)


def _mean(own: Sequence[Entry], averaged: Sequence[Column]) -> Cell:
    """Of the mean over tasks, by seed, where all tasks have the same."""
    by_task = [_seeds(own, column) for column in averaged]
    if not by_task[0] or any(one.keys() != by_task[0].keys() for one in by_task):
        return Cell(NO_VALUE)
    means = [fmean(one[seed] for one in by_task) for seed in by_task[0]]
    rows = len(averaged) * max(column.rows.test for column in averaged)
    return _told(means, rows, ACCURACY)


def _told(seeds: Sequence[float], rows: int, score: Score) -> Cell:
    found = score.interval(seeds, rows)
    if found is None:
        return Cell(NO_VALUE, "one seed")
    low, high = found
    told = " to ".join(score.text(bound, high - low) for bound in found)
    return Cell(told, f"n {len(seeds)}", fmean(seeds), high - low)
