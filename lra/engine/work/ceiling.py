"""Measurement of the machine's best rates."""

from __future__ import annotations

import torch

from lra.core.cells import CeilingCell
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.mechanism import device
from lra.measure.ceilings import measure_ceilings


def run(cell: CeilingCell, job: Job, report: Report) -> Outcome:
    """Return the rates of products and of copies."""
    place = device(cell.device)
    report(Progress(phase="ceilings"))
    found = measure_ceilings(getattr(torch, cell.dtype), place)
    return Outcome(
        status="ok",
        metrics=found.metrics,
        method={**found.method, "threads": torch.get_num_threads()},
    )
