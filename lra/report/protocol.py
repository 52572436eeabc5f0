"""The protocol behind a quality table, and how equal in size its models were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lra.core.cells import QualityCell
from lra.core.dataset import SPLITS
from lra.core.escape import escape_controls
from lra.report.entries import Entry, protocol_hash
from lra.report.quality.columns import Column
from lra.report.quality.sizes import UNEQUAL, distance, exact_sizes
from lra.report.quality.tables import QualityTable
from lra.report.rows import EXACT, NO_MIXING, row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Row, Table
from lra.report.versions import data_hash
from lra.report.words import NO_VALUE, NOT_RUN, flat, lowered, plain

_HASH = 12
"""Letters of a hash in the table; the CSV has all."""


def protocol_table(quality: QualityTable, selection: Selection) -> Table:
    """Return what was fixed for each task; what all of them share stands in the notes."""
    settings = [_settings(column, selection) for column in quality.columns]
    keys = list(dict.fromkeys(key for one in settings for key in one))
    shared = {k: settings[0][k] for k in keys if len({one.get(k) for one in settings}) == 1}
    varying = [key for key in keys if key not in shared]
    rows = [
        Row(column.title, tuple(Cell(text) for text in _task(column, one, varying)))
        for column, one in zip(quality.columns, settings, strict=True)
    ]
    return Table(
        id=f"protocol-{quality.number}",
        title=f"Tasks: {lowered(quality.table.title)}",
        caption=quality.table.caption,
        corner="task",
        columns=(
            "length",
            "rows: train / validation / test",
            "data hash",
            *(key.rpartition(".")[2].replace("_", " ") for key in varying),
            "generator",
        ),
        rows=tuple(rows),
        notes=(
            _shared("Model", "model.", shared, many=len(settings) > 1),
            _shared("Training", "training.", shared, many=len(settings) > 1),
            "Tested, once: the best weights by validation, or those of the last step where the "
            "protocol says so.",
            "Rules: fixed, or lra2021, the choices of the original code, faults included. Matched "
            "track: the same model and training around every mechanism. Tuned track: of the "
            "learning rates tried, for each mechanism and task the one that validates best.",
            *_starts(quality.columns),
        ),
        numeric=False,
    )


def _starts(columns: Iterable[Column]) -> list[str]:
    """What the start of queries and keys means, where one is not the usual."""
    if not any(column.tied for column in columns):
        return []
    return [
        "Query key start: tied, each layer starts with its keys equal to its queries; independent, "
        "each of the two from draws of its own."
    ]


def _settings(column: Column, selection: Selection) -> dict[str, str]:
    found = flat({"model": column.cell.model, "training": column.cell.training})
    if column.cell.track == "tuned":
        tried = {
            rate
            for kept in selection.kept
            if isinstance(kept.cell, QualityCell) and protocol_hash(kept.cell) == column.protocol
            for rate in kept.rates_tried
        }
        found["training.learning_rate"] = (
            f"the best of {', '.join(f'{r:g}' for r in sorted(tried))}"
        )
    return found


def _task(column: Column, settings: Mapping[str, str], varying: Iterable[str]) -> list[str]:
    data = column.cell.data
    given = {k: v for k, v in sorted(data.parameters.items()) if v is not None}
    generator = [f"{escape_controls(k)} {plain(v)}" for k, v in given.items()]
    if data.source != "generated":
        generator = ["none: real data"]
    return [
        f"{data.length:,}",
        " / ".join(f"{column.rows.of(split):,}" for split in SPLITS),
        data_hash(column.cell)[:_HASH],
        *(settings.get(key, NO_VALUE) for key in varying),
        ", ".join(generator) or "defaults",
    ]


def _shared(title: str, prefix: str, shared: Mapping[str, str], *, many: bool) -> str:
    parts = [
        f"{key.removeprefix(prefix).replace('_', ' ')} {text}"
        for key, text in shared.items()
        if key.startswith(prefix)
    ]
    return f"{title}{', the same for all tasks' if many else ''}: {', '.join(parts)}."


def parameter_table(quality: QualityTable, selection: Selection) -> Table:
    """Return trainable parameters by task, the unequal ones marked with how far they are off."""
    protocols = {column.protocol for column in quality.columns}
    group = [
        entry
        for entry in selection.entries
        if entry.metric == quality.score.metric and entry.protocol in protocols
    ]
    sizes = exact_sizes(group)
    rows = []
    for own in shown(group).values():
        cells = []
        for column in quality.columns:
            found = [entry for entry in own if entry.protocol == column.protocol]
            cells.append(_size(found, sizes.get(column.protocol)))
        rows.append(row(own, cells))
    return Table(
        id=f"parameters-{quality.number}",
        title=f"Trainable parameters: {lowered(quality.table.title)}",
        caption=f"Of the whole model, including unused parts ({NO_MIXING} keeps its query and "
        "key projections). As the smaller figure or in brackets: the difference from "
        f"{EXACT} where above {100 * UNEQUAL:.0f} %.",
        corner="mechanism",
        columns=tuple(column.title for column in quality.columns),
        rows=tuple(rows),
    )


def _size(found: Iterable[Entry], exact: int | None) -> Cell:
    entries = list(found)
    if not entries:
        return Cell(NOT_RUN)
    size = next((entry.parameters for entry in entries if entry.parameters is not None), None)
    if size is None:
        return Cell(entries[0].word or NO_VALUE)
    off = distance(size, exact)
    return Cell(f"{size:,}", f"{100 * off:+.0f} %" if abs(off) > UNEQUAL else "", float(size))
