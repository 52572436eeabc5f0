"""Measurement of the cost of a mechanism's call."""

from __future__ import annotations

from typing import cast

from lra.core import catalogue, loading
from lra.core.cells import EfficiencyCell
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.mechanism import device, load_mechanism, load_network
from lra.measure.efficiency import ModelContext, measure_efficiency
from tasks.contract import Task


def run(cell: EfficiencyCell, job: Job, report: Report) -> Outcome:
    """Return the measured costs."""
    device(cell.device)
    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    measured = measure_efficiency(
        cell,
        mechanism,
        config,
        _model_context(cell, job),
        report=lambda phase: report(Progress(phase=phase)),
    )
    return Outcome(
        status="ok",
        metrics=measured.metrics,
        parameters=measured.parameters,
        method=measured.method,
    )


def _model_context(cell: EfficiencyCell, job: Job) -> ModelContext | None:
    """Context of a mechanism in a whole model."""
    if cell.model is None:
        return None
    network = load_network(cell.model, cell.mechanism, job.mechanism)
    task = loading.load(catalogue.find("task", job.task or cell.task))
    return ModelContext(network, cast(type[Task], task).card)
