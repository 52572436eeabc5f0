"""Scores of the simple baselines of a task."""

from __future__ import annotations

import numpy as np

from lra.core.cards import TaskMetric
from lra.core.cells import BaselineCell
from lra.core.dataset import UNASKED, Split
from lra.core.records import Metric
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.data import load
from lra.measure.baselines_by_token import baselines_by_token
from tasks.contract import Task

SOLVED_ROWS = 500
"""Largest number of test rows that the task's own rule is tried on."""


def run(cell: BaselineCell, job: Job, report: Report) -> Outcome:
    """Return the score of each baseline."""
    report(Progress(phase="data"))
    task, dataset = load(cell.data, job)
    report(Progress(phase="baselines"))
    method: dict[str, object] = {}
    if dataset.test.by_token:
        found = baselines_by_token(dataset, task.card.metric)
        if dataset.test.has_source:
            method = _fits(dataset.train, "asked training tokens, the source with each")
    else:
        # scikit-learn takes a second to import, and other cells do without.
        from lra.measure.baselines import baselines

        found = baselines(dataset)
        method = _fits(dataset.train, "training rows")
    if task.card.metric == "accuracy":
        method["largest class of the test split"] = _majority_share(dataset.test)
    found |= task.rules_of_thumb(dataset)
    floor = task.floor(dataset)
    if floor is not None:
        found["floor"] = floor
        method["floor"] = "expected score of the best possible prediction, on all test rows"
    if cell.data.source == "generated":
        solved = _score_rule(task, dataset.test)
        if solved:
            method["exact solver"] = f"the task's own rule, on at most {SOLVED_ROWS} test rows"
        found |= solved
    return Outcome(
        status="ok",
        metrics={name: _metric(score, task.card.metric) for name, score in found.items()},
        rows=dataset.rows,
        # Threads that the fork server leaves to libraries other than torch.
        method={"threads": 1, **method},
    )


def _fits(train: Split, what: str) -> dict[str, object]:
    """Words for the data that the bag of tokens and the trees were fitted to."""
    from lra.measure import trees
    from lra.measure.baselines import FITTED_ROWS, STEPS

    number = int((train.labels != UNASKED).sum())
    fitted = f"logistic regression, at most {STEPS} steps of L-BFGS, on the first "
    boosted = f"{trees.TREES} of scikit-learn's histogram gradient boosting, on the first "
    return {
        "bag of tokens": f"{fitted}{min(FITTED_ROWS, number):,} {what}",
        "trees": f"{boosted}{min(trees.FITTED_ROWS, number):,} {what}, {trees.SEGMENTS} segments",
    }


def _majority_share(split: Split) -> float:
    """Share of the most frequent label."""
    asked = split.labels[split.labels != UNASKED]
    return float(np.unique(asked, return_counts=True)[1].max() / len(asked))


def _score_rule(task: Task, split: Split) -> dict[str, float]:
    """Score of the task's own rule on the first rows; nothing where it has none."""
    first = split.first(SOLVED_ROWS)
    answers = task.solve(first)
    if answers is None:
        return {}
    asked = first.labels != UNASKED
    return {"exact_solver": float((answers[asked] == first.labels[asked]).mean())}


def _metric(score: float, metric: TaskMetric) -> Metric:
    if metric == "accuracy":
        return Metric.share(score)
    return Metric(value=score, unit="nat" if metric == "nat" else "bit", better="lower")
