"""Scores the simple baselines of a task."""

from __future__ import annotations

from lra.core.cards import TaskMetric
from lra.core.cells import BaselineCell
from lra.core.records import Metric
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.data import load
from lra.measure.baselines_by_token import baselines_by_token


def run(cell: BaselineCell, job: Job, report: Report) -> Outcome:
    """Return the score of each baseline."""
    report(Progress(phase="data"))
    task, dataset = load(cell.data, job)
    report(Progress(phase="baselines"))
    if dataset.test.by_token:
        found = baselines_by_token(dataset, task.card.metric)
        method = {}
    else:
        # scikit-learn takes a second to import, and other cells do without.
        from lra.measure.baselines import FITTED_ROWS, STEPS, baselines

        found = baselines(dataset)
        rows = min(FITTED_ROWS, len(dataset.train))
        fitted = f"logistic regression, at most {STEPS} steps of L-BFGS, on the first {rows:,} "
        method = {"bag of tokens": f"{fitted}training rows"}
    found |= task.rules_of_thumb(dataset)
    return Outcome(
        status="ok",
        metrics={name: _metric(score, task.card.metric) for name, score in found.items()},
        rows=dataset.rows,
        # What the fork server's environment leaves to libraries other than torch.
        method={"threads": 1, **method},
    )


def _metric(score: float, metric: TaskMetric) -> Metric:
    if metric == "accuracy":
        return Metric.share(score)
    return Metric(value=score, unit="bit", better="lower")
