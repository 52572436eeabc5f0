"""Outcomes of sample cells: provenance, reasons of failure and metrics, of whichever kind."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from lra.core.metric_kinds import MetricKind, metric_kinds
from lra.core.records import Failure, Metric, Provenance, Record, Status

PROVENANCE = Provenance(
    git_commit="0123456789abcdef0123",
    git_dirty=False,
    version="0.1.0",
    libraries={"numpy": "2.4.6"},
)


def make_record(cell: Any, status: Status, started: str, **fields: Any) -> Record:
    return Record(
        id=cell.id,
        cell=cell,
        status=status,
        started_at=started,
        seconds=12.5,
        provenance=PROVENANCE,
        **fields,
    )


def failure(status: Status) -> Failure | None:
    reasons: dict[Status, Failure] = {
        "oom": Failure(
            type="MemoryError", message="asked for 4.3 GB, 2 GB allowed", phase="timing"
        ),
        "timeout": Failure(type="timeout", message="no end after 60 s", phase="training"),
        "crash": Failure(type="SIGSEGV", message="the worker died", phase="training"),
        "diverged": Failure(type="diverged", message="loss is nan at step 120", phase="training"),
        "error": Failure(type="ValueError", message="bad | value", phase="set-up"),
        "unsupported": Failure(type="UnsupportedError", message="longer than its maximum length"),
        "skipped": Failure(type="Pruned", message="oom at 1024"),
    }
    return reasons.get(status)


def sampled(q1: float, value: float, q3: float, **other: Any) -> Metric:
    """A metric with samples of these quartiles."""
    samples = (2 * q1 - value, value, 2 * q3 - value)
    spread = {"samples": samples, "q1": q1, "q3": q3, "minimum": samples[0]}
    return Metric(value=value, **{"unit": "s", **spread, **other})


def with_metrics(record: Record, **values: float) -> Record:
    """The record with further or other figures, as its kind of cell makes them."""
    more = {}
    for name, value in values.items():
        known = metric_kinds(record.cell).get(name, MetricKind("count"))
        sampled = {"samples": (value,), "minimum": value, "q1": value, "q3": value}
        how = sampled if known.sampled and not math.isnan(value) else {}
        more[name] = Metric(value=value, unit=known.unit, better=known.better, **how)  # type: ignore[arg-type]
    return msgspec.structs.replace(record, metrics={**record.metrics, **more})
