"""Columns of an accuracy table: one per protocol of a task, told apart by what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from lra.core.cells import QualityCell
from lra.core.escape import escape_controls
from lra.core.protocol import Rows
from lra.report.entries import protocol_hash
from lra.report.versions import data_hash
from lra.report.words import differing, flat

AVERAGED = ("listops", "text", "retrieval", "image", "pathfinder")
"""The tasks that a mean accuracy is over; a table that has fewer of them says which."""


class Column(msgspec.Struct, frozen=True, dict=True):
    """One protocol of one task."""

    title: str
    cell: QualityCell
    """Any cell of the column: they share scale, track, data, model and training."""
    rows: Rows
    """Examples of each split: as many as there were, where the record says so."""

    @property
    def task(self) -> str:
        """The task's name."""
        return self.cell.data.task

    @property
    def tied(self) -> bool:
        """Whether each layer starts with its keys equal to its queries."""
        return self.cell.model.query_key_start == "tied"

    @cached_property
    def protocol(self) -> str:
        """Hash of all that."""
        return protocol_hash(self.cell)

    @cached_property
    def data(self) -> str:
        """Hash of the data alone, by which simple baselines are joined."""
        return data_hash(self.cell)


def columns_of(measured: Iterable[tuple[QualityCell, Rows | None]]) -> list[Column]:
    """Return one column per protocol, the five named tasks first, from cells and their rows."""
    protocols: dict[str, QualityCell] = {}
    rows: dict[str, Rows] = {}
    for cell, found in measured:
        protocol = protocol_hash(cell)
        protocols[protocol] = cell
        if found is not None:
            rows[protocol] = found
    by_task: dict[str, list[QualityCell]] = {}
    for _, cell in sorted(protocols.items()):
        by_task.setdefault(cell.data.task, []).append(cell)
    return [
        column for task in sorted(by_task, key=_place) for column in _titled(by_task[task], rows)
    ]


def mean_columns(columns: Iterable[Column], rows: Mapping[str, int]) -> list[Column]:
    """Return the columns that a mean accuracy is over: of each named task the one with most rows.

    `rows` counts those that a protocol has. Empty if two protocols of a task have as many, or if
    there is but one task.
    """
    by_task: dict[str, list[Column]] = {}
    for column in columns:
        if column.task in AVERAGED:
            by_task.setdefault(column.task, []).append(column)
    chosen = []
    for found in by_task.values():
        most = max(rows[column.protocol] for column in found)
        leading = [column for column in found if rows[column.protocol] == most]
        if len(leading) > 1:
            return []
        chosen += leading
    return chosen if len(chosen) > 1 else []


def tokens(columns: Iterable[Column]) -> str:
    """Return how long their inputs are: `24 to 128 tokens`."""
    lengths = {column.cell.data.length for column in columns}
    low, high = min(lengths), max(lengths)
    return f"{low:,} to {high:,} tokens" if low < high else f"{low:,} tokens"


def _titled(cells: list[QualityCell], rows: Mapping[str, Rows]) -> list[Column]:
    settings = [
        flat({"data": cell.data, "model": cell.model, "training": cell.training}) for cell in cells
    ]
    for one, cell in zip(settings, cells, strict=True):
        del one["data.hash"]
        if cell.track == "tuned":
            # Each row has a rate of its own; that of the cell at hand is any of them.
            del one["training.learning_rate"]
    differences = differing(settings)
    if len(set(differences)) < len(cells):
        hashes = [f"data {data_hash(cell)[:8]}" for cell in cells]
        pairs = zip(hashes, differences, strict=True)
        differences = [", ".join(part for part in pair if part) for pair in pairs]
    columns = [
        Column(
            escape_controls(
                f"{cell.data.task} ({difference})" if len(cells) > 1 else cell.data.task
            ),
            cell,
            rows.get(protocol_hash(cell), cell.data.rows),
        )
        for cell, difference in zip(cells, differences, strict=True)
    ]
    return sorted(columns, key=lambda column: column.title)


def _place(task: str) -> tuple[int, str]:
    return (AVERAGED.index(task) if task in AVERAGED else len(AVERAGED), task)
