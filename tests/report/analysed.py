"""Inputs of sections, from records built in code; tables as plain text to compare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from lra.core.records import Metric, Record
from lra.report.analysis import Analysis
from lra.report.assemble import analyse
from lra.report.load.select import join
from lra.report.model import Table, Value
from report import sample

CAUSAL = sample.MODEL.by_token()


def analysed(records: Iterable[Record], reference: Iterable[Record] = ()) -> Analysis:
    """The analysis of a run beside a reference."""
    return analyse(join(list(records), list(reference)))


def texts(table: Table) -> dict[str, list[str]]:
    """Each row's values by its title."""
    return {row.title: [value.text for value in row.values] for row in table.rows}


def lines(table: Table) -> list[list[str]]:
    """Rows with titles, values and notes."""
    return [[row.title, *(value.line for value in row.values)] for row in table.rows]


def values(table: Table, title: str) -> dict[str, Value]:
    """One row by column."""
    (row,) = (row for row in table.rows if row.title == title)
    return dict(zip(table.columns, row.values, strict=True))


def recast(record: Record, **changes: Any) -> Record:
    """The record of a cell that differs in these fields."""
    cell = msgspec.structs.replace(record.cell, **changes)
    return msgspec.structs.replace(record, id=cell.id, cell=cell)


def told(
    name: str,
    task: str = "bytes",
    *,
    bits: float | None = None,
    nat: float | None = None,
    accuracy: float | None = None,
    decoded: float | None = None,
    seed: int = 0,
    status: Any = "ok",
    **method: Any,
) -> Record:
    """A training on a task that asks for each token; `method` is what its record says of it."""
    record = sample.quality(name, task, accuracy, model=CAUSAL, seed=seed, status=status)
    metric = "bits_per_byte" if bits is not None or accuracy is None else "accuracy"
    metrics = dict(record.metrics)
    if bits is not None:
        metrics["bits_per_byte"] = Metric(value=bits, unit="bit")
    if nat is not None:
        metric = "nat"
        metrics["nat"] = Metric(value=nat, unit="nat")
    if decoded is not None:
        metrics["decode_agreement"] = Metric.share(decoded)
    record = msgspec.structs.replace(record, metrics=metrics, method=method)
    return recast(record, metric=metric)


def bit_costs(**bits: float) -> Record:
    """Simple baselines in bits."""
    return costs("bytes", "bit", **bits)


def costs(task: str, unit: Any, **losses: float) -> Record:
    """Simple baselines in bits or nat."""
    record = sample.baseline(task)
    metrics = {name: Metric(value=value, unit=unit) for name, value in losses.items()}
    return msgspec.structs.replace(record, metrics=metrics)
