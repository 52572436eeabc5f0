"""Scores the simple baselines of a task."""

from __future__ import annotations

from lra.core.cells import BaselineCell
from lra.core.records import Metric
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.data import load


def run(cell: BaselineCell, job: Job, report: Report) -> Outcome:
    """Return the accuracy of each baseline."""
    # scikit-learn takes a second to import, and other cells do without.
    from lra.measure.baselines import FITTED_ROWS, STEPS, baselines

    report(Progress(phase="data"))
    task, dataset = load(cell.data, job)
    report(Progress(phase="baselines"))
    found = {**baselines(dataset), **task.rules_of_thumb(dataset)}
    return Outcome(
        status="ok",
        metrics={name: Metric.share(accuracy) for name, accuracy in found.items()},
        rows=dataset.rows,
        method={
            # What the fork server's environment leaves to libraries other than torch.
            "threads": 1,
            "bag of tokens": f"logistic regression, at most {STEPS} steps of L-BFGS, on the first "
            f"{min(FITTED_ROWS, len(dataset.train)):,} training rows",
        },
    )
