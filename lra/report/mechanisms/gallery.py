"""What mechanisms attend to: a table of how many pairs interact, and a picture of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lra.core.cells import ShowCell
from lra.core.escape import escape_controls
from lra.core.hashing import value_hash
from lra.core.records import Record
from lra.report.mechanisms.configs import in_force, labelled
from lra.report.mechanisms.picture import Picture
from lra.report.pictures.pattern import pattern_figure
from lra.report.table import Cell, Figure, Row, Section, Table
from lra.report.words import NO_VALUE, ending, percent

_MOST, _ROOM = 24, 1_400_000
"""Pictures, and characters of them, after which no other is drawn: a page is to be there within
seconds, in less than 5 MB."""


def gallery(records: Iterable[Record]) -> Section | None:
    """Return the section of pictures; None where there is no record of one."""
    found = _newest(records)
    if not found:
        return None
    labels = labelled([_cell(record).mechanism for record in found])
    drawn = [
        Picture(label, _cell(record), record.pattern)
        for record, label in zip(found, labels, strict=True)
        if record.pattern is not None
    ]
    figures: list[Figure] = []
    for number, one in enumerate(drawn[:_MOST], start=1):
        if sum(len(figure.svg) for figure in figures) > _ROOM:
            break
        figures.append(pattern_figure(one, number))
    told: tuple[str, ...] = (
        "A coloured square is a pair of positions that may interact; see python -m lra "
        "show. Weights are those of untrained layers, by each mechanism's dense formula.",
    )
    if len(figures) < len(drawn):
        told += (
            f"The page has room for the first {len(figures)} of {len(drawn)} pictures; "
            "python -m lra show draws any other.",
        )
    tables = (_table(found, labels),)
    return Section("gallery", "What they attend to", told, tables, tuple(figures))


def _cell(record: Record) -> ShowCell:
    assert isinstance(record.cell, ShowCell)
    return record.cell


def _newest(records: Iterable[Record]) -> list[Record]:
    """The newest record of each picture, whatever sources and machine it came from."""
    found: dict[tuple[object, ...], Record] = {}
    for record in sorted(records, key=lambda r: (r.started_at, r.id)):
        cell = _cell(record)
        sizes = (cell.length, cell.width, cell.heads, cell.head_width)
        asked = (cell.mechanism.name, cell.direction, *sizes, cell.input)
        found[(*asked, value_hash(in_force(cell.mechanism.config)))] = record
    return [found[key] for key in sorted(found)]


def _table(records: Sequence[Record], labels: Sequence[str]) -> Table:
    rows = []
    for record, label in zip(records, labels, strict=True):
        cell, pairs, what = _cell(record), NO_VALUE, ending(record.status, record.failure)
        if record.pattern is not None:
            pairs, what = f"{percent(record.pattern.share)} %", record.pattern.kind
        elif record.failure is not None:
            what = f"{what}: {escape_controls(record.failure.message)}"
        texts = (str(cell.length), cell.direction, pairs, what)
        rows.append(Row(label, tuple(map(Cell, texts)), mechanism=cell.mechanism.name))
    return Table(
        id="gallery",
        title="Pairs that interact",
        caption="Share of all pairs of positions. Where there are no weights to draw, dependence "
        "is measured by gradients.",
        corner="mechanism",
        columns=("positions", "direction", "pairs", "drawn"),
        rows=tuple(rows),
        numeric=False,
    )
