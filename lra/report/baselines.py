"""Simple baselines of tasks: token counts, the most frequent answer, rules of thumb.

The task's exact solver is none of them: its score is the best possible. The reference's baselines
stand in where the run has none of that data.
"""

from __future__ import annotations

import msgspec
import pandas as pd

from lra.report.accuracy import Accuracies, Column
from lra.report.load.select import Evidence

MAJORITY, BAG = "majority", "bag_of_tokens"
SOLVER = "exact_solver"
ENTROPY = "its grammar"
"""Name in records of the entropy of a generated text, in bits per byte."""
LARGEST = "largest class of the test split"
"""Key of a baseline's method for the largest class of the test split: the best constant answer. The
largest class in training, which `majority` answers, may be a smaller one there."""


class Simple(msgspec.Struct, frozen=True):
    """One simple baseline on one column."""

    name: str
    """Name: `majority`, `bag of tokens`, or that of the rule."""
    metric: str
    value: float
    origin: str


def simple(evidence: Evidence, scores: Accuracies, column: Column) -> dict[str, Simple]:
    """Return the baselines of a column by metric, the exact solver left out."""
    return {one.metric: one for one in _fitting(evidence, scores, column) if one.metric != SOLVER}


def shortcut(evidence: Evidence, scores: Accuracies, column: Column) -> Simple | None:
    """Return the best simple baseline of a column; None where there is none."""
    found = [*simple(evidence, scores, column).values()]
    found = [one for one in found if one.metric != ENTROPY]
    best = sorted(found, key=lambda one: (one.value if scores.lower else -one.value, one.name))
    return best[0] if best else None


def solver(evidence: Evidence, scores: Accuracies, column: Column) -> float | None:
    """Return the score of the task's exact solver; None where the task has none."""
    found = [one.value for one in _fitting(evidence, scores, column) if one.metric == SOLVER]
    return found[0] if found else None


def guessing(evidence: Evidence, scores: Accuracies, column: Column) -> float | None:
    """Return the share that the best constant answer gets right; None where that is not known."""
    own = _rows(evidence, scores, column)
    own = own[own["metric"] == MAJORITY]
    if own.empty:
        return None
    first = own.iloc[0]
    largest = evidence.records[first["origin"], first["record"]].method.get(LARGEST)
    return float(largest or first["value"])


def _fitting(evidence: Evidence, scores: Accuracies, column: Column) -> list[Simple]:
    own = _rows(evidence, scores, column)
    return [
        Simple(str(metric).replace("_", " "), str(metric), float(value), str(origin))
        for metric, value, origin in zip(own["metric"], own["value"], own["origin"], strict=True)
    ]


def _rows(evidence: Evidence, scores: Accuracies, column: Column) -> pd.DataFrame:
    """Figures of baselines on a column's data: the run's, else the reference's."""
    figures = evidence.baselines
    own = figures[
        (figures["protocol"] == column.data)
        & (figures["scale"] == scores.setting.scale)
        & (figures["unit"] == ("bit" if scores.lower else "share"))
        & figures["value"].notna()
    ]
    run = own[own["origin"] == "run"]
    return own if run.empty else run
