"""Profiles of a training step."""

from __future__ import annotations

from typing import Any

from lra.core.cells import ProfileCell
from lra.core.profile_metrics import PARTS, part_metric
from lra.core.records import Metric, Record, Status

from .outcomes import failure, make_record, sampled
from .settings import HERE, MODEL, TRAINING, Named, answering, data


def profile(
    name: Named,
    task: str,
    *,
    seconds: float = 0.02,
    status: Status = "ok",
    kernels: float | None = None,
    started: str = "2026-11-20T11:15:00Z",
    measure: int = 1,
    **fields: Any,
) -> Record:
    """Profile of a step of a billion operations; its backward pass takes half of its parts."""
    own, versions = answering(name, "cost")
    cell = ProfileCell(
        **{
            "scale": "mini",
            "machine": HERE,
            "torch": "2.13.0",
            "threads": 2,
            "versions": {"train": 1, "profile": measure, f"data/{task}": 1, **versions},
            "mechanism": own,
            "data": data(task),
            "model": MODEL,
            "training": TRAINING,
            **fields,
        }
    )
    if status != "ok":
        return make_record(cell, status, started, failure=failure(status))
    shares = (0.01, 0.02, 0.07, 0.25, 0.5, 0.02, 0.12, 0.01)
    metrics = {
        "step_seconds": sampled(seconds, seconds, seconds),
        "steps_per_second": sampled(
            0.98 / seconds, 1 / seconds, 1.02 / seconds, unit="1/s", better="higher"
        ),
        "row_seconds": Metric(value=1e-3, unit="s"),
        "operations": Metric(value=1e9, unit="count"),
        "padding": Metric(value=0.034, unit="share"),
        "operators_seconds": Metric(value=0.016, unit="s"),
        "operator addmm": Metric(value=0.008, unit="s"),
        "operator softmax": Metric(value=0.004, unit="s"),
    }
    parts = zip(PARTS, shares, strict=True)
    metrics |= {part_metric(part): Metric(value=x * seconds, unit="s") for part, x in parts}
    if kernels is not None:
        metrics["kernels"] = Metric(value=kernels, unit="count")
    return make_record(cell, "ok", started, metrics=metrics)
