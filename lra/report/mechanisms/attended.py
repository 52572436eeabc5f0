"""What trained attention reads: how far its heads look on each task, and which pixels an answer
came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from lra.core.cells import QualityCell
from lra.core.published import Spans, spans
from lra.core.trained_attention import TrainedAttention
from lra.report.entries import Entry, Kept, Origin
from lra.report.pictures.rollout import rollout_figure
from lra.report.quality.columns import Column, columns_of
from lra.report.quality.doubts import FAILED_NOTE, FAILED_WORD, UNSEEN
from lra.report.quality.group import Group, group_of
from lra.report.quality.score import SCORES
from lra.report.rows import Rows, reference_notes, row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Figure, Row, Section, Table, sorted_groups
from lra.report.words import NO_VALUE, figures, percent, span

_MOST = 6
"""Models whose pictures are drawn."""
_ALIKE = 2.0
"""A published distance stands below lengths that are within this factor of its own."""

_Looked = Mapping[tuple[Origin, str], TrainedAttention | None]
"""What was seen of a training, by its origin and record; None where looking failed."""


def attended_section(selection: Selection) -> Section | None:
    """Return the section, a table for each group of trainings; None where none was looked at."""
    looked: dict[tuple[Origin, str], TrainedAttention | None] = {}
    trained: list[tuple[Kept, QualityCell]] = []
    for kept in selection.kept:
        cell, attended = kept.cell, kept.record.attended
        known = attended is not None or UNSEEN in kept.record.method
        # Of tokens in an order of no meaning a distance says nothing.
        if isinstance(cell, QualityCell) and known and cell.data.order == "given":
            looked[kept.origin, kept.record.id] = attended
            trained.append((kept, cell))
    if not trained:
        return None
    entries = [
        e for e in selection.entries if e.metric in SCORES and (e.origin, e.record) in looked
    ]
    tables = []
    groups = sorted_groups(trained, lambda pair: group_of(pair[1]).whole)
    for number, (_, own) in enumerate(groups, start=1):
        under = group_of(own[0][1]).whole
        columns = columns_of((cell, kept.record.rows) for kept, cell in own)
        tables.append(_table(f"attention-distance-{number}", under, columns, entries, looked))
    return Section("attended", "What trained attention reads", tables=tuple(tables)).with_figures(
        _pictures(trained)
    )


def _pictures(trained: Iterable[tuple[Kept, QualityCell]]) -> list[Figure]:
    drawn = [
        (kept, cell, kept.record.attended)
        for kept, cell in trained
        if kept.record.attended is not None and kept.record.attended.rollouts
    ]
    return [
        rollout_figure(
            f"{kept.label} (reference)" if kept.origin == "reference" else kept.label,
            cell,
            group_of(cell).words,
            attended,
            number,
        )
        for number, (kept, cell, attended) in enumerate(drawn[:_MOST], start=1)
    ]


def _table(
    id: str, under: Group, columns: Sequence[Column], entries: Iterable[Entry], looked: _Looked
) -> Table:
    protocols = {column.protocol for column in columns}
    rows = shown(e for e in entries if e.protocol in protocols)
    lines = [row(own, [_cell(own, column, looked) for column in columns]) for own in rows.values()]
    published = spans("lra_spans")
    beside = [_there(published, column) for column in columns]
    if any(cell.value is not None for cell in beside):
        lines.append(Row("LRA: Transformer", tuple(beside), group="Published"))
    return Table(
        id=id,
        title=f"Mean attention distance in tokens at scale {under.words}",
        caption="Of a query to the keys it reads, weighted by how much it reads of them; over "
        "layers, heads, seeds and n validation sequences of each. As the "
        "smaller figure or in brackets: percent of the task's length.",
        corner="mechanism",
        columns=tuple(column.title for column in columns),
        rows=tuple(lines),
        notes=(
            "For mechanisms whose weights are not negative and sum to 1. Attention that reads all "
            "positions alike has a distance of a third of the sequence, of a quarter where it is "
            "causal.",
            "n is at most 64; fewer where the weights exceed 2^28 numbers (down to 4) or looking "
            "takes more than half a minute (down to 1).",
            *([FAILED_NOTE] if _failed(rows, looked) else []),
            *_notes(published, beside),
            *reference_notes(rows),
        ),
    )


def _cell(own: Iterable[Entry], column: Column, looked: _Looked) -> Cell:
    tried = [looked[e.origin, e.record] for e in own if e.protocol == column.protocol]
    found = [one for one in tried if one is not None]
    if not found:
        return Cell(FAILED_WORD if tried else NO_VALUE)
    distance = fmean(one.distance for one in found)
    share = percent(distance / column.cell.data.length)
    lost = len(tried) - len(found)
    note = f"{share} %, n {_examples(found)}{f', {lost} {FAILED_WORD}' if lost else ''}"
    return Cell(figures(distance), note, distance)


def _failed(rows: Rows, looked: _Looked) -> bool:
    return any(looked[e.origin, e.record] is None for own in rows.values() for e in own)


def _examples(found: Iterable[TrainedAttention]) -> str:
    """How many sequences each training was looked at with."""
    return span(one.examples for one in found)


def _there(published: Spans, column: Column) -> Cell:
    """What is published of the task; nothing where the length there is another."""
    task, length = column.task, column.cell.data.length
    if task not in published.tasks:
        return Cell(NO_VALUE)
    there = published.lengths[task]
    if max(length, there) > _ALIKE * min(length, there):
        return Cell(NO_VALUE)
    distance = published.tasks[task]
    return Cell(f"about {distance:,}", f"of {there:,}", distance)


def _notes(published: Spans, beside: Iterable[Cell]) -> list[str]:
    if all(cell.value is None for cell in beside):
        return []
    return [
        f"LRA: {published.source}; {published.note}. As the smaller figure or in brackets: the "
        "sequence length there; a task is left out where that differs from the length here by "
        f"more than a factor of {_ALIKE:g}."
    ]
