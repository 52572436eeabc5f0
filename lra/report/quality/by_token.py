"""Tasks that ask for each token: bits per byte in words, and whether decoding gives the same
answers."""

from __future__ import annotations

from collections.abc import Iterable

from lra.core.cells import QualityCell
from lra.report.entries import Entry
from lra.report.quality.columns import Column, columns_of
from lra.report.quality.tables import QualityTable
from lra.report.rows import NO_MIXING, row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Table
from lra.report.words import NO_VALUE, listing, percent

_TOLD = 5
"""Mechanisms that a sentence names."""
_AGREEMENT = "decode_agreement"


def bits_sentences(tables: Iterable[QualityTable]) -> list[str]:
    """Return, of each task, the mechanisms that need the fewest bits, and what stands beside."""
    sentences = []
    for table in (one.table for one in tables):
        for place, column in enumerate(table.columns):
            known = [line for line in table.rows if line.cells[place].value is not None]
            known.sort(key=lambda line: line.cells[place].value or 0.0)
            mixing = [line for line in known if line.mechanism not in ("", NO_MIXING)]
            mixing = mixing or [line for line in known if line.mechanism]
            told = [f"{line.title} {line.cells[place].text}" for line in mixing[:_TOLD]]
            beside = [
                f"{line.title} {line.cells[place].text}" for line in known if line not in mixing
            ]
            if told:
                more = f" ({', '.join(beside)})" if beside else ""
                sentences.append(f"{table.title}, on {column} the fewest: {listing(told)}{more}.")
    return sentences


def decode_table(selection: Selection) -> Table | None:
    """Return how often a trained model answers alike in one pass and step by step."""
    found = [e for e in selection.entries if e.metric == _AGREEMENT]
    if not found:
        return None
    columns = _columns(found, selection)
    scales = len({column.cell.scale for column in columns}) > 1
    return Table(
        id="decoding-by-use",
        title="Decoding by use",
        caption="Percent of the tokens asked for that a trained model tells alike in one pass and "
        "step by step, after half of each text was taken in at once; over seeds, the least.",
        corner="mechanism",
        columns=tuple(
            f"{column.title}, {column.cell.scale}" if scales else column.title for column in columns
        ),
        rows=tuple(
            row(own, [_least(own, column.protocol) for column in columns])
            for own in shown(found).values()
        ),
    )


def _columns(group: Iterable[Entry], selection: Selection) -> list[Column]:
    records = {entry.record for entry in group}
    return columns_of(
        (kept.cell, kept.record.rows)
        for kept in selection.kept
        if isinstance(kept.cell, QualityCell) and kept.record.id in records
    )


def _least(own: Iterable[Entry], protocol: str) -> Cell:
    values = [e.value for e in own if e.protocol == protocol and e.value is not None]
    return Cell(percent(min(values)), value=min(values)) if values else Cell(NO_VALUE)
