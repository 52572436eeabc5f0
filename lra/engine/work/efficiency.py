"""Measures time and memory of a mechanism."""

from __future__ import annotations

from lra.core.cells import EfficiencyCell
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.mechanism import device, load_mechanism
from lra.measure.efficiency import measure_efficiency


def run(cell: EfficiencyCell, job: Job, report: Report) -> Outcome:
    """Return what was measured."""
    device(cell.device)
    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    measured = measure_efficiency(
        cell, mechanism, config, report=lambda phase: report(Progress(phase=phase))
    )
    return Outcome(
        status="ok",
        metrics=measured.metrics,
        parameters=measured.parameters,
        method=measured.method,
    )
