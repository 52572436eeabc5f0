"""Tasks that ask for each token: bits per byte in words, and whether decoding gives the same
answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lra.core.cells import QualityCell
from lra.report.entries import Entry
from lra.report.quality.columns import Column, columns_of
from lra.report.quality.group import group_of
from lra.report.quality.tables import QualityTable
from lra.report.rows import NO_MIXING, row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Table, sorted_groups
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


def decode_tables(selection: Selection) -> list[Table]:
    """Return how often trained models answer alike in one pass and step by step, a table for each
    group of trainings."""
    cells = {
        kept.record.id: (kept.cell, kept.record.rows)
        for kept in selection.kept
        if isinstance(kept.cell, QualityCell)
    }
    found = [e for e in selection.entries if e.metric == _AGREEMENT]
    groups = sorted_groups(found, lambda e: group_of(cells[e.record][0]).whole)
    return [
        _decode_table(
            f"decoding-by-use-{number}", group, columns_of(cells[e.record] for e in group)
        )
        for number, (_, group) in enumerate(groups, start=1)
    ]


def _decode_table(id: str, group: Sequence[Entry], columns: Sequence[Column]) -> Table:
    return Table(
        id=id,
        # Only what answers token by token is decoded.
        title=f"Decoding by use at scale {group_of(columns[0].cell).whole.words}",
        caption="Percent of the tokens asked for that a trained model tells alike in one pass and "
        "step by step, after half of each text was taken in at once; over seeds, the least.",
        corner="mechanism",
        columns=tuple(column.title for column in columns),
        rows=tuple(
            row(own, [_least(own, column.protocol) for column in columns])
            for own in shown(group).values()
        ),
    )


def _least(own: Iterable[Entry], protocol: str) -> Cell:
    values = [e.value for e in own if e.protocol == protocol and e.value is not None]
    return Cell(percent(min(values)), value=min(values)) if values else Cell(NO_VALUE)
