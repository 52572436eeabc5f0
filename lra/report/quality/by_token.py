"""Tasks that ask for each token: bits per byte in words, and whether decoding gives the same
answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lra.report.entries import Entry, Origin
from lra.report.quality.columns import Column, columns_of
from lra.report.quality.doubts import (
    AGREEMENT,
    FAILED_NOTE,
    FAILED_WORD,
    UNDECODED,
    Leaked,
    agreement_text,
)
from lra.report.quality.group import group_of
from lra.report.quality.score import SCORES
from lra.report.quality.tables import QualityTable
from lra.report.rows import NO_MIXING, row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Table, sorted_groups
from lra.report.words import NO_VALUE, listing

_TOLD = 5
"""Mechanisms that a sentence names."""

_Decoded = Mapping[tuple[Origin, str], float | None]
"""Share of equal answers by origin and record; None where decoding failed."""


def bits_sentences(tables: Iterable[QualityTable], leaked: Leaked) -> list[str]:
    """Return, of each task, the mechanisms that need the fewest bits, and what stands beside."""
    sentences = []
    for quality in tables:
        table = quality.table
        for place, column in enumerate(quality.columns):
            known = [
                line
                for line in table.rows
                if line.cells[place].value is not None
                and (line.origin, line.variant, column.protocol) not in leaked
            ]
            known.sort(key=lambda line: line.cells[place].value or 0.0)
            mixing = [line for line in known if line.mechanism not in ("", NO_MIXING)]
            mixing = mixing or [line for line in known if line.mechanism]
            told = [f"{line.title} {line.cells[place].text}" for line in mixing[:_TOLD]]
            beside = [
                f"{line.title} {line.cells[place].text}" for line in known if line not in mixing
            ]
            if told:
                more = f" ({', '.join(beside)})" if beside else ""
                start = f"{table.title}, on {column.title} the fewest"
                sentences.append(f"{start}: {listing(told)}{more}.")
    return sentences


def decode_tables(selection: Selection) -> list[Table]:
    """Return how often trained models answer alike in one pass and step by step, a table for each
    group of trainings."""
    cells = selection.trained()
    decoded: dict[tuple[Origin, str], float | None] = {}
    for kept in selection.kept:
        record = kept.record
        if record.id in cells and (UNDECODED in record.method or AGREEMENT in record.metrics):
            metric = record.metrics.get(AGREEMENT)
            decoded[kept.origin, record.id] = metric.value if metric else None
    entries = [
        e for e in selection.entries if e.metric in SCORES and (e.origin, e.record) in decoded
    ]
    groups = sorted_groups(entries, lambda e: group_of(cells[e.record][0]).whole)
    return [
        _decode_table(
            f"decoding-by-use-{number}", own, columns_of(cells[e.record] for e in own), decoded
        )
        for number, (_, own) in enumerate(groups, start=1)
    ]


def _decode_table(
    id: str, group: Sequence[Entry], columns: Sequence[Column], decoded: _Decoded
) -> Table:
    rows = tuple(
        row(own, [_least(own, column.protocol, decoded) for column in columns])
        for own in shown(group).values()
    )
    failed = any(decoded[e.origin, e.record] is None for e in group)
    return Table(
        id=id,
        # Only what answers token by token is decoded.
        title=f"Decoding by use at scale {group_of(columns[0].cell).whole.words}",
        caption="Share of tokens predicted alike in one pass and step by step (after half of each "
        "text was taken in at once), in percent; of several seeds the least.",
        corner="mechanism",
        columns=tuple(column.title for column in columns),
        rows=rows,
        notes=(FAILED_NOTE,) if failed else (),
    )


def _least(own: Iterable[Entry], protocol: str, decoded: _Decoded) -> Cell:
    found = [decoded[e.origin, e.record] for e in own if e.protocol == protocol]
    values = [value for value in found if value is not None]
    if not values:
        return Cell(FAILED_WORD if found else NO_VALUE)
    failed = len(found) - len(values)
    note = f"{failed} of {len(found)} {FAILED_WORD}" if failed else ""
    return Cell(agreement_text(min(values)), note, min(values))
