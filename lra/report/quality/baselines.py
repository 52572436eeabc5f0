"""Simple baselines beside every accuracy: no mixing, bag of tokens, majority, rules of thumb; and
beside bits per byte."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

import msgspec

from lra.core.cells import QualityCell
from lra.report.entries import Entry
from lra.report.quality.columns import Column
from lra.report.rows import NO_MIXING
from lra.report.table import Cell, Row
from lra.report.versions import data_hash
from lra.report.words import NO_VALUE, NOT_RUN, figures, percent

GROUP = "Baselines"
SIMPLE = {"bag_of_tokens": "bag of tokens", "majority": "majority"}
"""What every task has, by metric: what it is called."""
_RULE = "rule of thumb"
SOLVER = "exact_solver"
"""The task's exact solver, which is no baseline: what can be known."""
FLOOR = "its grammar"
"""In records, what a generated text costs at the least, in bits per byte: no model can do with
fewer."""
ENTROPY = "the grammar's entropy"
"""What that is called."""

_KNOWS = {
    SIMPLE["bag_of_tokens"]: "logistic regression on how often each token occurs",
    SIMPLE["majority"]: "the commonest answer in training",
    _RULE: "the best rule that looks at one thing alone",
    "area": "how many pixels the shape covers",
    "marker distance": "how far the two discs are apart",
    "a value of the pairs": "the commonest of them",
}
"""What a simple baseline answers by; below the rule of thumb the rules that tasks have."""


def no_mixing_rows(
    rows: Sequence[Row], columns: Sequence[Column], averaged: Sequence[Column]
) -> list[Row]:
    """Return the rows of `identity` as baselines, or one that says it was not run."""
    if not rows:
        missing = [Cell(NOT_RUN)] * len(columns) + [Cell(NO_VALUE)] * bool(averaged)
        return [Row(f"no mixing ({NO_MIXING})", tuple(missing), group=GROUP, mechanism=NO_MIXING)]
    return [
        msgspec.structs.replace(row, label=f"no mixing ({row.label})", group=GROUP) for row in rows
    ]


def simple_rows(
    simple: Sequence[Entry], columns: Sequence[Column], averaged: Sequence[Column]
) -> list[Row]:
    """Return majority, bag of tokens and, where a task has any, its best rule of thumb.

    A reference stands in where the run has no baseline of that data.
    """
    rows = []
    for metric in (*SIMPLE, _RULE):
        found = [_cell(metric, fitting(simple, column.cell)) for column in columns]
        cells = [cell for cell, _ in found]
        if metric == _RULE and all(cell.value is None for cell in cells):
            continue
        if averaged:
            own = [cell for cell, c in zip(cells, columns, strict=True) if c in averaged]
            cells.append(_mean(own))
        marks = {origin for _, origin in found if origin}
        note = "reference" if marks == {"reference"} else ""
        rows.append(Row(SIMPLE.get(metric, _RULE), tuple(cells), note, GROUP))
    return rows


def legend(rows: Sequence[Row]) -> list[str]:
    """Return a sentence on what the simple baselines are that have a figure in these rows."""
    known = [(row.label, cell) for row in rows for cell in row.cells if cell.value is not None]
    rules = [cell.note for label, cell in known if label == _RULE]
    named = dict.fromkeys([*(label for label, _ in known), *rules])
    told = [f"{name}, {_KNOWS[name]}" for name in named if name in _KNOWS]
    return [f"Simple baselines: {'; '.join(told)}."] if told else []


def best_bag(rows: Sequence[Row], place: int) -> Cell | None:
    """Return the bag of tokens' cell in a column where it prints more than no mixing and is the
    best of all simple baselines; None elsewhere."""
    known = [row for row in rows if row.group == GROUP and row.cells[place].value is not None]
    floor = [row.cells[place].text for row in known if row.mechanism]
    if not floor:
        return None
    best = max(known, key=lambda row: row.cells[place].value or 0.0)
    cell = best.cells[place]
    return cell if is_bag(best) and cell.text not in floor else None


def is_bag(row: Row) -> bool:
    """Whether it is the bag of tokens, of the run or the reference."""
    return row.group == GROUP and row.label == SIMPLE["bag_of_tokens"]


def fitting(simple: Sequence[Entry], cell: QualityCell) -> list[Entry]:
    """Return the simple baselines of a training's data: the run's, else the reference's."""
    data = data_hash(cell)
    found = [e for e in simple if (e.protocol, e.scale) == (data, cell.scale)]
    return [entry for entry in found if entry.origin == "run"] or found


def _cell(metric: str, own: Sequence[Entry]) -> tuple[Cell, str]:
    """The cell and where it comes from."""
    if metric == _RULE:
        rules = [(e.value, e.label, e) for e in own if e.metric not in (*SIMPLE, SOLVER)]
        known = [(value, label, e) for value, label, e in rules if value is not None]
        if not known:
            return Cell("none" if own else NOT_RUN), ""
        value, label, entry = max(known, key=lambda rule: rule[:2])
        return Cell(percent(value), label, value), entry.origin
    entries = [e for e in own if e.metric == metric]
    if not entries:
        return Cell("none" if own else NOT_RUN), ""
    entry = entries[0]
    if entry.value is None:
        return Cell(entry.word, entry.reason if entry.word == "not measured" else ""), entry.origin
    return Cell(percent(entry.value), value=entry.value), entry.origin


def _mean(cells: Sequence[Cell]) -> Cell:
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < len(cells):
        return Cell(NO_VALUE, f"{len(values)} of {len(cells)}")
    return Cell(percent(mean(values)), value=mean(values))


BITS_BASELINES = (
    "majority: frequencies of bytes; current token: of bytes after each byte, what can be told "
    "without mixing, positions aside; xz: the whole split, compressed, not window by window; "
    f"{ENTROPY}: what a ledger's own draws cost, the least there is."
)
"""What stands beside bits per byte, in words."""


def bits_rows(simple: Sequence[Entry], columns: Sequence[Column]) -> list[Row]:
    """Return what bytes cost without a model of ours, the dearest first."""
    found = [[e for e in fitting(simple, column.cell) if e.unit == "bit"] for column in columns]
    rows = []
    for label in dict.fromkeys(entry.label for own in found for entry in own):
        entries = [next((e for e in own if e.label == label), None) for own in found]
        cells = tuple(_bits(entry) for entry in entries)
        marks = {entry.origin for entry in entries if entry is not None}
        note = "reference" if marks == {"reference"} else ""
        rows.append(Row(ENTROPY if label == FLOOR else label, cells, note, GROUP))
    return sorted(rows, key=lambda line: -max(cell.value or 0.0 for cell in line.cells))


def _bits(entry: Entry | None) -> Cell:
    if entry is None or entry.value is None:
        return Cell(NO_VALUE if entry is None else entry.word, entry.reason if entry else "")
    return Cell(figures(entry.value), value=entry.value)
