"""Errors of approximations."""

from __future__ import annotations

from typing import Any

from lra.core.cells import ErrorCell
from lra.core.protocol import Machine
from lra.core.records import Metric, Record, Status

from .outcomes import failure, make_record
from .settings import HERE, Named, answering


def error(
    name: Named,
    length: int,
    output: float | None = 0.1,
    *,
    status: Status = "ok",
    rate: float | None = None,
    own_keys: bool = False,
    machine: Machine = HERE,
    torch: str = "2.13.0",
    started: str = "2026-11-20T11:30:00Z",
    measure: str = "x1",
    **fields: Any,
) -> Record:
    """Errors whose gradients are off twice, three and four times as much as the output."""
    own, versions = answering(name)
    cell = ErrorCell(
        scale="mini",
        machine=machine,
        torch=torch,
        threads=1,
        versions={"error": measure, **versions},
        mechanism=own,
        length=length,
        **{"heads": 2, "head_width": 32, **fields},
    )
    if status != "ok":
        return make_record(cell, status, started, failure=failure(status))
    names = ("output_error", "gradient_error_q", "gradient_error_k", "gradient_error_v")
    metrics = {
        metric: Metric(
            value=None if output is None else times * output,
            unit="ratio",
            why_null="it is nan" if output is None else None,
        )
        for times, metric in enumerate(names, start=1)
    }
    method: dict[str, Any] = {"exact_keys": "of its own" if own_keys else "as given"}
    if rate is not None:
        method |= {"predicted_rate": rate, "predicted_budget": ["features"]}
    return make_record(cell, "ok", started, metrics=metrics, method=method)
