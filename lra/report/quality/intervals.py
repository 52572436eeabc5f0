"""Intervals of accuracies: where the mean over seeds may lie, by task."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from lra.report.entries import Entry
from lra.report.quality.columns import Column
from lra.report.quality.tables import QualityTable
from lra.report.rows import row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Table
from lra.report.words import NO_VALUE, NOT_RUN, listing, percent
from lra.verdict.accuracy import interval

_Seeds = dict[int, float]


def interval_table(quality: QualityTable, selection: Selection) -> Table | None:
    """Return the interval of each accuracy of a table; None where nothing has two seeds."""
    protocols = {column.protocol for column in quality.columns}
    group = [
        e for e in selection.entries if e.metric == "test_accuracy" and e.protocol in protocols
    ]
    averaged, rows = quality.averaged, []
    for own in shown(group).values():
        cells = [_cell(own, column) for column in quality.columns]
        cells += [_mean(own, averaged)] if averaged else []
        if any(cell.value is not None for cell in cells):
            rows.append(row(own, cells))
    if not rows:
        return None
    number = quality.table.id.rpartition("-")[2]
    return Table(
        id=f"interval-{number}",
        title="Intervals of the accuracies",
        caption="Percent of test rows: the 95 % interval of the mean over seeds.",
        corner="mechanism",
        columns=quality.table.columns,
        rows=tuple(rows),
        notes=(
            "Student's, over n seeds, each interval by itself and within 0 and 100 %: of seeds "
            "alone, on these test rows. Rows of one seed have none and are left out.",
        ),
    )


def _seeds(own: Sequence[Entry], column: Column) -> _Seeds:
    return {
        e.seed or 0: e.value for e in own if e.protocol == column.protocol and e.value is not None
    }


def _cell(own: Sequence[Entry], column: Column) -> Cell:
    seeds = _seeds(own, column)
    if not seeds:
        words = sorted({e.word for e in own if e.protocol == column.protocol})
        return Cell(listing(words) or NOT_RUN)
    return _told(list(seeds.values()), 1 / column.rows.test)


def _mean(own: Sequence[Entry], averaged: Sequence[Column]) -> Cell:
    """Of the mean over tasks, by seed, where all tasks have the same."""
    by_task = [_seeds(own, column) for column in averaged]
    if not by_task[0] or any(one.keys() != by_task[0].keys() for one in by_task):
        return Cell(NO_VALUE)
    means = [fmean(one[seed] for one in by_task) for seed in by_task[0]]
    return _told(means, 1 / (len(averaged) * max(column.rows.test for column in averaged)))


def _told(seeds: Sequence[float], grain: float) -> Cell:
    found = interval(seeds, grain)
    if found is None:
        return Cell(NO_VALUE, "one seed")
    low, high = found
    told = " to ".join(percent(bound, high - low) for bound in found)
    return Cell(told, f"n {len(seeds)}", fmean(seeds), high - low)
