"""Changes between two builds, or differences between two mechanisms, cell by cell.

A cell has one of five verdicts: same, better, worse, ambiguous, incomparable. A time is judged over
pairs of processes, by the bounds of the ratio and a margin: it is worse where even the lower bound
lies above the margin, the same where both bounds lie within a wider one, and otherwise ambiguous:
the processes are too few or too noisy. Counts, such as bytes of tensors, have no noise, and any
change beyond rounding matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Literal

import msgspec

from lra.verdict.ratio import SURE
from lra.verdict.student import half_width

Verdict = Literal["same", "better", "worse", "ambiguous", "incomparable"]

TIME_MARGIN = 0.03
"""Largest difference of times, as a share, that does not matter."""
TIME_SAME = 0.1
"""Share of one within which the ratio of equal times surely lies."""
COUNT_MARGIN = 0.01
"""Largest difference of counts, as a share, that does not matter."""
ACCURACY_MARGIN = 0.005
"""Largest difference of accuracies, as a share of 1, that does not matter."""
ACCURACY_SAME = 0.02
"""Bound within which the difference of equal accuracies surely lies."""
LOSS_MARGIN = 0.01
"""Largest difference of losses, such as bits per byte, as a share, that does not matter."""
LOSS_SAME = 0.03
"""Share of one within which the ratio of equal losses surely lies."""
GRAIN = 0.001
"""Least spread assumed for seeds, in accuracies and losses: seeds that agree more closely than a
test row in a thousand are no evidence of a smaller one."""


class Change(msgspec.Struct, frozen=True):
    """Change of one figure between two sides."""

    verdict: Verdict
    ratio: float | None = None
    """Second figure over the first; None for accuracies, and where there is no ratio."""
    difference: float | None = None
    """Second accuracy less the first, as a share of 1; None for other figures."""
    low: float | None = None
    high: float | None = None
    """Bounds of the ratio or the difference, each one-sided, 95 %; None for a single pair."""
    pairs: int = 0


def compare_times(before: Mapping[int, float], after: Mapping[int, float]) -> Change | None:
    """Judge times, or other figures where less is better, by replicate; None without a pair.

    Each bound holds with probability 95 % by itself (Student's, on logarithms), so that 5 % of
    equal cells would be called worse without the margin. Pairs that are all equal to the last digit
    are the same, whatever their number.
    """
    return _compare_ratios(before, after, TIME_MARGIN, TIME_SAME)


def compare_losses(before: Mapping[int, float], after: Mapping[int, float]) -> Change | None:
    """Judge losses by seed as times are by replicate; None where no seed is on both sides.

    Machines do not change losses, so that a smaller difference matters.
    """
    return _compare_ratios(before, after, LOSS_MARGIN, LOSS_SAME, GRAIN)


def _compare_ratios(
    before: Mapping[int, float],
    after: Mapping[int, float],
    margin: float,
    alike: float,
    grain: float = 0.0,
) -> Change | None:
    shared = sorted(before.keys() & after.keys())
    if not shared:
        return None
    if all(before[r] == after[r] for r in shared):
        return Change("same", ratio=1.0, low=1.0, high=1.0, pairs=len(shared))
    logs = [math.log(after[r] / before[r]) for r in shared if before[r] > 0 and after[r] > 0]
    if len(logs) < len(shared):
        # No ratio to zero, such as the error of an exact result.
        more = fmean(after[r] for r in shared) > fmean(before[r] for r in shared)
        return Change("worse" if more else "better", pairs=len(shared))
    middle = fmean(logs)
    if len(logs) < 2:
        return Change("ambiguous", ratio=math.exp(middle), pairs=1)
    half = _half_width(logs, grain)
    low, high = middle - half, middle + half
    return Change(
        _verdict(low, high, math.log1p(margin), math.log1p(alike)),
        ratio=math.exp(middle),
        low=math.exp(low),
        high=math.exp(high),
        pairs=len(logs),
    )


def compare_counts(before: Mapping[int, float], after: Mapping[int, float]) -> Change | None:
    """Judge counts, such as bytes or operations, where less is better; None without a pair.

    Where replicates differ, the largest is used.
    """
    if not before or not after:
        return None
    first, second = max(before.values()), max(after.values())
    if first <= 0 or second <= 0:
        # No ratio to a count of zero.
        return Change("same" if first == second else "worse" if second else "better", pairs=1)
    off = math.log(second / first)
    worse = off > math.log1p(COUNT_MARGIN)
    better = off < -math.log1p(COUNT_MARGIN)
    verdict: Verdict = "worse" if worse else "better" if better else "same"
    return Change(verdict, ratio=second / first, pairs=1)


def compare_accuracies(before: Mapping[int, float], after: Mapping[int, float]) -> Change | None:
    """Judge accuracies by seed, where more is better; None where no seed is on both sides.

    Seeds that are all equal to the last digit are the same, whatever their number.
    """
    differences = [after[seed] - before[seed] for seed in sorted(before.keys() & after.keys())]
    if not differences:
        return None
    pairs, middle = len(differences), fmean(differences)
    if not any(differences):
        return Change("same", difference=0.0, low=0.0, high=0.0, pairs=pairs)
    if pairs < 2:
        return Change("ambiguous", difference=middle, pairs=1)
    half = _half_width(differences, GRAIN)
    verdict = _verdict(-middle - half, -middle + half, ACCURACY_MARGIN, ACCURACY_SAME)
    return Change(verdict, difference=middle, low=middle - half, high=middle + half, pairs=pairs)


def _half_width(differences: Sequence[float], grain: float) -> float:
    """Return the distance of each bound from the mean of two differences or more.

    `grain` is the least spread assumed.
    """
    return half_width(SURE, max(stdev(differences), grain), len(differences))


def _verdict(low: float, high: float, margin: float, alike: float) -> Verdict:
    """Return the verdict by the bounds of a difference where less is better."""
    if low > margin:
        return "worse"
    if high < -margin:
        return "better"
    return "same" if max(-low, high) <= alike else "ambiguous"
