"""Measurement of a mechanism's attention pattern."""

from __future__ import annotations

from lra.core.cells import ShowCell
from lra.core.records import Metric
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.mechanism import load_mechanism
from lra.measure.pattern import measure_pattern


def run(cell: ShowCell, job: Job, report: Report) -> Outcome:
    """Return the pattern, and the share of pairs that may interact."""
    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    report(Progress(phase="draw"))
    pattern = measure_pattern(cell, mechanism, config, source=job.source)
    pairs = Metric(value=pattern.share, unit="share", better="neither")
    return Outcome(status="ok", metrics={"pairs": pairs}, pattern=pattern)
