"""What luck alone does to accuracies: one mechanism against itself, and two seeds of any."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from statistics import fmean, median

from lra.report.table import Cell
from lra.verdict.accuracy import Accuracies

TWICE = "the same mechanism twice"
ANOTHER = "the same, another seed"
NOTES = (
    f"{TWICE}: half of the seeds of the mechanism that the column compares with, an odd one left "
    "out, against as many others: what chance alone gives; an interval needs four seeds.",
    f"{ANOTHER}: the difference between two seeds of one mechanism, the median over all pairs and "
    "the largest.",
)


def halves(own: Accuracies) -> tuple[Accuracies, Accuracies] | None:
    """Return two disjoint sets of a mechanism's seeds, the later first, under the same numbers, so
    that they pair as the seeds of two mechanisms do; None of a single seed."""
    seeds = _shared(own)
    half = len(seeds) // 2
    if not half:
        return None
    first, second = (
        {task: {n: found[seed] for n, seed in enumerate(part)} for task, found in own.items()}
        for part in (seeds[:half], seeds[half : 2 * half])
    )
    return second, first


def seed_distance(known: Iterable[Accuracies]) -> Cell | None:
    """Return how far two seeds of one mechanism are apart, in the mean over tasks; None where no
    mechanism has two."""
    found = []
    for own in known:
        means = [fmean(task[seed] for task in own.values()) for seed in _shared(own)]
        found += [abs(one - other) for one, other in combinations(means, 2)]
    if not found:
        return None
    middle = median(found)
    return Cell(f"±{100 * middle:.1f}", f"at most {100 * max(found):.1f}", middle)


def _shared(own: Accuracies) -> list[int]:
    return sorted(set[int].intersection(*(set(task) for task in own.values())))
