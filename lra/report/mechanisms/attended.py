"""What trained attention reads: how far its heads look on each task, and which pixels an answer
came from."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from lra.core.attended import Attended
from lra.core.cells import QualityCell
from lra.core.published import spans
from lra.report.entries import Kept, protocol_hash
from lra.report.pictures.rollout import rollout_figure
from lra.report.quality.columns import Column, columns_of
from lra.report.select import Selection
from lra.report.table import Cell, Row, Section, Table
from lra.report.words import NO_VALUE, figures, percent

_MOST = 6
"""Models whose pictures are drawn."""


def attended_section(selection: Selection) -> Section | None:
    """Return the section; None where no training was looked at."""
    found = [(kept, kept.record.attended) for kept in selection.kept]
    # Of tokens in an order of no meaning a distance says nothing.
    known = [
        (kept, attended)
        for kept, attended in found
        if attended is not None and _trained(kept).data.order == "given"
    ]
    if not known:
        return None
    drawn = [(kept, attended) for kept, attended in known if attended.rollouts]
    pictures = [
        rollout_figure(kept.label, _trained(kept), attended, number)
        for number, (kept, attended) in enumerate(drawn[:_MOST], start=1)
    ]
    return Section(
        "attended", "What trained attention reads", tables=(_table(known),)
    ).with_figures(pictures)


def _trained(kept: Kept) -> QualityCell:
    assert isinstance(kept.cell, QualityCell), "nothing else is looked at"
    return kept.cell


def _table(known: Sequence[tuple[Kept, Attended]]) -> Table:
    columns = columns_of((_trained(kept), kept.record.rows) for kept, _ in known)
    distances: dict[str, dict[str, list[float]]] = {}
    mechanisms: dict[str, str] = {}
    for kept, attended in known:
        cell = _trained(kept)
        own = distances.setdefault(kept.label, {})
        own.setdefault(protocol_hash(cell), []).append(attended.distance)
        mechanisms[kept.label] = cell.mechanism.name
    rows = [
        Row(
            label,
            tuple(_cell(own.get(column.protocol, []), column) for column in columns),
            group="Trained here",
            mechanism=mechanisms[label],
            variant=label,
        )
        for label, own in sorted(distances.items())
    ]
    published = spans("lra_spans")
    beside = [_there(published.tasks.get(column.task)) for column in columns]
    if any(cell.value is not None for cell in beside):
        rows.append(Row("LRA: Transformer", tuple(beside), group="Published"))
    scales = len({column.cell.scale for column in columns}) > 1
    return Table(
        id="attention-distance",
        title="Mean attention distance, in tokens",
        caption="Of a query to the keys it reads, weighted by how much it reads of them; over "
        "layers, heads, seeds and up to 64 validation sequences. Below, in percent of the task's "
        "length.",
        corner="mechanism",
        columns=tuple(
            f"{column.title}, {column.cell.scale}" if scales else column.title for column in columns
        ),
        rows=tuple(rows),
        notes=(
            "For mechanisms whose weights are not negative and sum to 1. Attention that reads all "
            "positions alike has a distance of a third of the sequence, of a quarter where it is "
            "causal.",
            f"LRA: {published.source}; {published.note}. Its lengths are 1,024 to 4,000.",
        ),
    )


def _cell(found: Sequence[float], column: Column) -> Cell:
    if not found:
        return Cell(NO_VALUE)
    distance, length = fmean(found), column.cell.data.length
    return Cell(figures(distance), f"{percent(distance / length)} %", distance)


def _there(distance: int | None) -> Cell:
    return Cell(NO_VALUE) if distance is None else Cell(f"about {distance:,}", value=distance)
