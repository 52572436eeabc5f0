"""Comparison of accuracies: differences over seeds on given tasks, and ranks over tasks.

Two questions are kept apart. `paired_difference` asks whether a difference would come up again with
other seeds, on these tasks: tasks are fixed, seeds are drawn, and a seed of one mechanism is paired
with the same seed of the other, as both share order and data. `average_ranks` asks whether one
mechanism would rank above another on other tasks like these: tasks are drawn, and there are few of
them (Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 2006).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance
from typing import Any, TypeVar

import msgspec

from lra.verdict.ratio import SURE
from lra.verdict.student import quantile, two_sided_p

Accuracies = Mapping[str, Mapping[int, float]]
"""Accuracies of one mechanism, by task and then by seed."""
_Task = TypeVar("_Task", str, tuple[Any, ...])


class Difference(msgspec.Struct, frozen=True):
    """Difference of two mechanisms in accuracy: a mean over tasks of means over seeds, as a share
    of 1."""

    value: float
    low: float | None
    high: float | None
    """Bounds of the interval of 95 %; None where a task has a single pair of seeds."""
    p: float | None
    """Probability of a difference as large, of either sign, between equal mechanisms."""
    tasks: int
    pairs: int
    """Number of seeds that both have, over all tasks."""


def paired_difference(
    own: Mapping[_Task, Mapping[int, float]],
    other: Mapping[_Task, Mapping[int, float]],
    grain: float = 0.0,
) -> Difference | None:
    """Return how much more accurate `own` is; None where they share no seed on any task.

    Each task counts alike, whatever its number of seeds. Each task has its own variance, that of
    differences between its seeds; the interval is Student's, with the degrees of freedom of Welch
    and Satterthwaite. `grain` is the smallest step of an accuracy, a row of the test: differences
    that agree more closely are no evidence of a smaller spread, which is taken to be at least
    `grain`.
    """
    found = []
    for task in sorted(own.keys() & other.keys()):
        seeds = sorted(own[task].keys() & other[task].keys())
        if seeds:
            found.append([own[task][seed] - other[task][seed] for seed in seeds])
    if not found:
        return None
    value, pairs = fmean(fmean(one) for one in found), sum(map(len, found))
    if any(len(one) < 2 for one in found):
        return Difference(value, None, None, None, len(found), pairs)
    parts = [max(variance(one), grain**2) / len(one) / len(found) ** 2 for one in found]
    square = sum(parts)
    if square == 0:
        return Difference(value, value, value, 1.0 if value == 0 else 0.0, len(found), pairs)
    freedom = square**2 / sum(p**2 / (len(one) - 1) for p, one in zip(parts, found, strict=True))
    error = math.sqrt(square)
    margin = quantile(SURE, freedom) * error
    p = two_sided_p(value / error, freedom)
    return Difference(value, value - margin, value + margin, p, len(found), pairs)


def holm_adjust(p: Sequence[float]) -> list[float]:
    """Return the probabilities corrected for asking all these questions at once.

    Holm's step-down correction: the probability that any true null among them falls below a level
    is at most that level, however they depend on each other.
    """
    found, least = [0.0] * len(p), 0.0
    for place, n in enumerate(sorted(range(len(p)), key=lambda n: p[n])):
        least = max(least, min(1.0, p[n] * (len(p) - place)))
        found[n] = least
    return found


def mean_interval(
    seeds: Sequence[float], grain: float = 0.0, most: float = 1.0
) -> tuple[float, float] | None:
    """Return the bounds of Student's 95 % interval of the mean over seeds, within 0 and `most`;
    None for one seed.

    Seeds that agree more closely than `grain`, a row of the test, are no evidence of a smaller
    spread: it is taken to be at least `grain`.
    """
    if len(seeds) < 2:
        return None
    error = math.sqrt(max(variance(seeds), grain**2) / len(seeds))
    margin = quantile(SURE, len(seeds) - 1) * error
    middle = fmean(seeds)
    return max(0.0, middle - margin), min(most, middle + margin)


class Ranks(msgspec.Struct, frozen=True):
    """Average ranks over tasks; 1 is the most accurate."""

    average: dict[str, float]
    """Average rank by mechanism, best first."""
    critical: float
    """Nemenyi's critical difference: closer ranks are not told apart at 5 %."""
    p: float
    """Friedman's p: probability of ranks that differ as much, where all are alike on every task."""
    tasks: int

    def differ(self, one: str, other: str) -> bool:
        """Whether two mechanisms are told apart."""
        return self.p < 1 - SURE and abs(self.average[one] - self.average[other]) > self.critical


def average_ranks(accuracies: Mapping[str, Accuracies]) -> Ranks | None:
    """Return the ranks of mechanisms by their mean accuracy on each task.

    Over the tasks that all of them have; None for fewer than three mechanisms or two tasks.
    """
    if len(accuracies) < 3:
        return None
    tasks = sorted(set[str].intersection(*(set(own) for own in accuracies.values())))
    if len(tasks) < 2:
        return None
    from scipy.stats import chi2, rankdata, studentized_range

    names = list(accuracies)
    by_task = [rankdata([-fmean(accuracies[n][task].values()) for n in names]) for task in tasks]
    average = {name: fmean(float(own[k]) for own in by_task) for k, name in enumerate(names)}
    number, blocks = len(names), len(tasks)
    # Ties lower the spread of ranks, by which Friedman's statistic is divided.
    spread = sum(float(((own - (number + 1) / 2) ** 2).sum()) for own in by_task)
    above = blocks**2 * sum((rank - (number + 1) / 2) ** 2 for rank in average.values())
    statistic = above * (number - 1) / spread if spread else 0.0
    yardstick = float(studentized_range.ppf(SURE, number, math.inf)) / math.sqrt(2)
    return Ranks(
        average=dict(sorted(average.items(), key=lambda item: (item[1], item[0]))),
        critical=yardstick * math.sqrt(number * (number + 1) / (6 * blocks)),
        p=float(chi2.sf(statistic, number - 1)),
        tasks=blocks,
    )


def above_chance(accuracy: float, chance: float, rows: int) -> bool:
    """Whether an accuracy on `rows` test rows is above the luck of guessing.

    `chance` is the share that a constant answer gets right; luck reaches the 99 % quantile of
    binomial draws.
    """
    from scipy.stats import binom

    return round(accuracy * rows) > float(binom.ppf(0.99, rows, chance))
