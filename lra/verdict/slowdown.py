"""The gate on times: the slowdowns that fail, their certainty, and the smallest one that it can
detect.

A cell fails where the lower 95 % bound of its ratio, over pairs of processes, lies above a margin,
and does so again on fresh pairs. The margin is 3 % or, on a noisier machine, the value that one in
a hundred equal cells passes in one comparison; two comparisons together are then wrong once in ten
thousand.
"""

from __future__ import annotations

import math

from lra.verdict.change import TIME_MARGIN, Change
from lra.verdict.ratio import SURE
from lra.verdict.student import bisect, detection_power, deviation_factor, half_width

PAIRS, MOST = 12, 48
"""Numbers of pairs of processes in one comparison: at first, and at most where noise asks for
more."""
TARGET = 0.2
"""Slowdown, as a share, that a comparison has pairs enough to find."""
FALSE_ALARMS = 0.01
"""Share of equal cells that one comparison may call slower."""
FOUND = 0.95
"""Share of slowdowns of the smallest size that both comparisons find."""
CAREFUL = 0.8
"""Probability that a spread is no larger than assumed."""
_WIDEST = 3.0
"""Largest slowdown in the search, as a logarithm: a factor of 20."""


def margin(spread: float, pairs: int = PAIRS) -> float:
    """Return the slowdown, as a share, that a cell may surely have without failing.

    `spread` is the standard deviation of the logarithms of ratios between equal processes.
    """

    def is_enough(allowed: float) -> bool:
        """Whether few equal cells exceed a margin, given as a logarithm."""
        return detection_power(SURE, -allowed, spread, pairs) <= FALSE_ALARMS

    low = math.log1p(TIME_MARGIN)
    return TIME_MARGIN if is_enough(low) else math.expm1(bisect(low, _WIDEST, is_enough))


def calibrated_margin(change: Change) -> float:
    """Return the margin that a comparison of one build with itself requires, as a share.

    At least its sure difference from 1: equal builds may differ by their places in memory.
    """
    spread = log_deviation(change)
    if spread is None or change.low is None or change.high is None:
        return TIME_MARGIN
    return max(margin(spread, change.pairs), change.low - 1, 1 / change.high - 1)


def is_slower(change: Change, allowed: float) -> bool:
    """Whether a time is surely more than `allowed`, a share, above the other."""
    return change.low is not None and change.low > 1 + allowed


def is_faster(change: Change, allowed: float) -> bool:
    """Whether a time is surely more than `allowed`, a share, below the other."""
    return change.high is not None and change.high < 1 / (1 + allowed)


def log_deviation(change: Change) -> float | None:
    """Return the standard deviation of the logarithms behind a ratio of times; None for a single
    pair."""
    if change.ratio is None or change.low is None or change.pairs < 2:
        return None
    return math.log(change.ratio / change.low) / half_width(SURE, 1.0, change.pairs)


def smallest_slowdown(spread: float, allowed: float, pairs: int = PAIRS) -> float:
    """Return the smallest slowdown, as a share, that both comparisons find on 95 % of cells."""
    if spread == 0:
        return allowed

    def is_found(above: float) -> bool:
        """Whether both comparisons find a slowdown this far above the margin, a logarithm."""
        return detection_power(SURE, above, spread, pairs) ** 2 >= FOUND

    return math.expm1(math.log1p(allowed) + bisect(0.0, _WIDEST, is_found))


def pairs_needed(spread: float, allowed: float) -> int:
    """Return the number of pairs that find a slowdown of 20 % on 95 % of cells, `MOST` at most.

    It depends on the spread alone: to go on while a ratio looks bad would find slowdowns that do
    not exist. The first pairs estimate the spread badly; a bound is used that is large enough in
    four of five such cases.
    """
    careful = spread * deviation_factor(CAREFUL, PAIRS - 1)
    enough = (n for n in range(PAIRS, MOST) if smallest_slowdown(careful, allowed, n) <= TARGET)
    return next(enough, MOST)
