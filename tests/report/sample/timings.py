"""Times and memory of mechanisms, and the ceilings of a machine."""

from __future__ import annotations

from typing import Any

from lra.core.cells import CeilingCell, EfficiencyCell
from lra.core.protocol import Machine
from lra.core.records import Metric, Record, Status

from .outcomes import failure, make_record, sampled
from .settings import HERE, Named, answering


def efficiency(
    name: Named,
    length: int,
    mode: str = "forward",
    seconds: float | None = 0.01,
    memory: float | None = 50e6,
    *,
    status: Status = "ok",
    machine: Machine = HERE,
    replicate: int = 0,
    width: float = 0.02,
    started: str = "2026-11-20T11:00:00Z",
    measure: int = 1,
    declared: tuple[str, str] | None = None,
    **fields: Any,
) -> Record:
    """`declared` are growths of time and memory, where the record says them."""
    own, versions = answering(name, "cost")
    timing = {"time": measure, **({} if mode == "forward" else {f"time/{mode}": 1})}
    cell = EfficiencyCell(
        machine=machine,
        versions={**timing, **versions},
        mechanism=own,
        length=length,
        mode=mode,
        replicate=replicate,
        **{
            "torch": "2.13.0",
            "threads": 2,
            "scale": "mini",
            "heads": 4,
            "head_width": 64,
            "device": "cuda" if machine.driver else "cpu",
            **fields,
        },
    )
    if status != "ok":
        return make_record(cell, status, started, failure=failure(status))
    gpu = cell.device == "cuda"
    peak, other = "peak_allocated_bytes", "peak_resident_bytes"
    metrics = {
        "control_before": sampled(1.0e-3, 1.0e-3, 1.0e-3),
        "control_after": sampled(1.04e-3, 1.04e-3, 1.04e-3),
        peak if gpu else other: Metric(
            value=memory, unit="B", why_null=None if memory else "no counter"
        ),
        other if gpu else peak: Metric(
            value=None, unit="B", why_null="no CPU" if gpu else "no GPU"
        ),
    }
    if seconds is not None:
        low, high = seconds * (1 - width / 2), seconds * (1 + width / 2)
        metrics["latency"] = sampled(low, seconds, high)
    method: dict[str, Any] = {"timer": "perf_counter_ns", "warm_up": 3}
    if declared is not None:
        method["declared_time"], method["declared_memory"] = declared
    return make_record(cell, "ok", started, metrics=metrics, method=method)


def ceiling(
    product: float = 1e11,
    copy: float = 1e10,
    *,
    machine: Machine = HERE,
    started: str = "2026-11-20T11:00:00Z",
    **fields: Any,
) -> Record:
    cell = CeilingCell(
        machine=machine, torch="2.13.0", threads=2, versions={"ceiling": "c1"}, **fields
    )
    metrics = {
        "product_rate": Metric(value=product, unit="1/s", better="higher"),
        "copy_rate": Metric(value=copy, unit="B/s", better="higher"),
    }
    return make_record(cell, "ok", started, metrics=metrics)
