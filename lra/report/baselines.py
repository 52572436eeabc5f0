"""Baselines of tasks, and the best of them: what is known of a task without attention.

Simple ones: token counts, the most frequent answer, boosted trees, rules of thumb. Trained ones:
the controls, `identity` and `local`. The task's exact solver is none of them: its score is the best
possible. The reference's baselines stand in where the run has none of that data.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pandas as pd

from lra.core.catalogue import CONTROLS, LOCAL, NO_MIXING
from lra.report.accuracy import Accuracies, Column, Score
from lra.report.load.frame import typed
from lra.report.load.select import Evidence
from lra.verdict.accuracy import above_chance

MAJORITY, BAG, TREES = "majority", "bag_of_tokens", "trees"
NAMED = (MAJORITY, BAG, TREES)
"""Simple baselines that every task with a label for each example has; others are its own rules."""
CONTROL_NAMES = {NO_MIXING: "no mixing", LOCAL: "local mixing"}
SOLVER = "exact_solver"
FLOOR = "floor"
"""Name in records of the best score that any prediction can be expected to have."""
_EARLIER = {"its grammar": FLOOR}
"""Earlier names in records: the entropy of a generated text was called so."""
LARGEST = "largest class of the test split"
"""Key of a baseline's method for the largest class of the test split: the best constant answer. The
largest class in training, which `majority` answers, may be a smaller one there."""


class Simple(msgspec.Struct, frozen=True):
    """One baseline on one column."""

    name: str
    """Name: `majority`, `bag of tokens`, that of the rule, or `local mixing`."""
    metric: str
    """Name in records; of a control that of the mechanism."""
    value: float
    origin: str
    score: Score | None = None
    """Score of a control, whose seeds bear fewer digits than a rule's single figure."""


def simple(evidence: Evidence, scores: Accuracies, column: Column) -> dict[str, Simple]:
    """Return the baselines of a column by metric, the exact solver left out."""
    return {one.metric: one for one in _fitting(evidence, scores, column) if one.metric != SOLVER}


def shortcut(evidence: Evidence, scores: Accuracies, column: Column) -> Simple | None:
    """Return the best baseline of a column, simple or trained; None where there is none."""
    found = [*simple(evidence, scores, column).values(), *_controls(scores, column)]
    found = [one for one in found if one.metric != FLOOR]
    best = sorted(found, key=lambda one: (one.value if scores.lower else -one.value, one.name))
    return best[0] if best else None


def unbeaten(
    scores: Accuracies, shortcuts: Mapping[str, Simple | None]
) -> frozenset[tuple[str, str, str]]:
    """Return origin, variant and protocol of the scores that are not surely better than the best
    shortcut of their column: there nothing is shown about attention. Controls are not judged.

    `shortcuts` is by protocol. Sure of an accuracy is more than the luck of so many test rows; of a
    loss, any less.
    """
    rows = {column.protocol: column.rows.test for column in scores.columns}
    own = scores.pooled[scores.pooled["mean"].notna() & ~scores.pooled["mechanism"].isin(CONTROLS)]
    names = [own[name].tolist() for name in ("origin", "variant", "protocol", "mean")]
    found = set()
    for origin, variant, protocol, mean in zip(*names, strict=True):
        best = shortcuts.get(protocol)
        if best is None:
            continue
        is_better = (
            mean < best.value if scores.lower else above_chance(mean, best.value, rows[protocol])
        )
        if not is_better:
            found.add((origin, variant, protocol))
    return frozenset(found)


def _controls(scores: Accuracies, column: Column) -> list[Simple]:
    """Scores of the controls, the run's before the reference's."""
    own = scores.pooled
    own = own[(own["protocol"] == column.protocol) & own["mean"].notna()]
    found: dict[str, Simple] = {}
    for origin in ("run", "reference"):
        rows = own[(own["origin"] == origin) & own["mechanism"].isin(CONTROLS)]
        for one in typed(rows, Score):
            name = one.mechanism
            found.setdefault(name, Simple(CONTROL_NAMES[name], name, one.mean, origin, one))
    return [*found.values()]


def solver(evidence: Evidence, scores: Accuracies, column: Column) -> float | None:
    """Return the score of the task's exact solver; None where the task has none."""
    found = [one.value for one in _fitting(evidence, scores, column) if one.metric == SOLVER]
    return found[0] if found else None


def floor(evidence: Evidence, scores: Accuracies, column: Column) -> float | None:
    """Return the best score that any prediction can be expected to have; None where that is not
    known."""
    found = simple(evidence, scores, column).get(FLOOR)
    return None if found is None else found.value


def is_past_floor(scores: Accuracies, column: Column, value: float, best: float) -> bool:
    """Return whether the score of a seed is surely better than the best possible: of a loss, any
    less; of an accuracy, more than the luck of so many test rows."""
    return value < best if scores.lower else above_chance(value, best, column.rows.test)


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
    names = own["metric"].replace(_EARLIER)
    return [
        Simple(str(metric).replace("_", " "), str(metric), float(value), str(origin))
        for metric, value, origin in zip(names, own["value"], own["origin"], strict=True)
    ]


def _rows(evidence: Evidence, scores: Accuracies, column: Column) -> pd.DataFrame:
    """Figures of baselines on a column's data: the run's, else the reference's."""
    figures = evidence.baselines
    own = figures[
        (figures["protocol"] == column.data)
        & (figures["scale"] == scores.setting.scale)
        & (figures["unit"] == (scores.loss.unit if scores.loss else "share"))
        & figures["value"].notna()
    ]
    run = own[own["origin"] == "run"]
    return own if run.empty else run
