"""Attention patterns: a small picture for each mechanism, and the share of pairs that interact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lra.core.cells import ShowCell
from lra.core.records import Record
from lra.report.analysis import Analysis
from lra.report.load.measurement import variant_id
from lra.report.load.variants import labelled
from lra.report.model import Row, Section, Table, Value, drawn
from lra.report.plots.gallery import gallery_figure
from lra.report.plots.picture import Picture
from lra.report.words import ending


def sections(analysis: Analysis) -> list[Section]:
    """Return the section of pictures; none without a record of one."""
    found = newest(analysis.evidence.shown)
    return [present(found, analysis)] if found else []


def present(found: Sequence[Record], analysis: Analysis) -> Section:
    """Return the pictures, and a table of failed ones."""
    failed = [record for record in found if record.pattern is None]
    return Section(
        topic="Gallery",
        text=(
            "A coloured square is a pair of positions that may interact, queries downwards, keys "
            "to the right. The page of each mechanism has its weights.",
        ),
        figures=drawn([gallery_figure(pictures(found), analysis.looks)]),
        tables=(_failed(failed),) if failed else (),
    )


def pictures(found: Sequence[Record]) -> list[Picture]:
    """Return the pictures that can be drawn from records of `lra show`."""
    labels = labelled([_cell(record).mechanism for record in found])
    return [
        Picture(label, _cell(record), record.pattern)
        for record, label in zip(found, labels, strict=True)
        if record.pattern is not None
    ]


def newest(records: Iterable[Record]) -> list[Record]:
    """Return the newest record of each picture, whatever sources and machine it came from."""
    found: dict[tuple[object, ...], Record] = {}
    for record in sorted(records, key=lambda r: (r.started_at, r.id)):
        cell = _cell(record)
        sizes = (cell.length, cell.width, cell.heads, cell.head_width)
        variant = variant_id(cell.mechanism.name, cell.mechanism.config)
        found[cell.mechanism.name, cell.direction, *sizes, cell.input, variant] = record
    return [found[key] for key in sorted(found, key=str)]


def _cell(record: Record) -> ShowCell:
    assert isinstance(record.cell, ShowCell), "only `show` makes pictures"
    return record.cell


def _failed(records: Sequence[Record]) -> Table:
    return Table(
        id="gallery",
        title="Not drawn",
        caption="",
        corner="mechanism",
        columns=("why",),
        rows=tuple(
            Row(
                _cell(record).mechanism.name,
                (
                    Value(
                        ending(record.status, record.failure),
                        record.failure.message if record.failure else "",
                    ),
                ),
            )
            for record in records
        ),
        numeric=False,
    )
