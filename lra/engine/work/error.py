"""Measurement of a mechanism's error against softmax attention."""

from __future__ import annotations

from lra.core.cells import ErrorCell
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.mechanism import device, load_mechanism
from lra.measure.error import measure_error


def run(cell: ErrorCell, job: Job, report: Report) -> Outcome:
    """Return the errors of the output and of the gradients."""
    device(cell.device)
    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    measured = measure_error(
        cell, mechanism, config, report=lambda phase: report(Progress(phase=phase))
    )
    return Outcome(
        status="ok",
        metrics=measured.metrics,
        parameters=measured.parameters,
        method=measured.method,
    )
