"""Measures what the machine can do at best."""

from __future__ import annotations

import torch

from lra.core.cells import CeilingCell
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.mechanism import device
from lra.measure.ceilings import SIZE, measure_ceilings


def run(cell: CeilingCell, job: Job, report: Report) -> Outcome:
    """Return both rates."""
    place = device(cell.device)
    report(Progress(phase="ceilings"))
    width, length = SIZE[place.type]
    return Outcome(
        status="ok",
        metrics=measure_ceilings(getattr(torch, cell.dtype), place),
        method={
            "product": f"two {width} x {width} matrices of N(0, 1), the fastest of its calls",
            "copy": f"{length:,} elements, read and written, the fastest of its calls",
            "threads": torch.get_num_threads(),
        },
    )
