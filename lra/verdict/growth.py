"""Growth of a cost with length: the exponent of a power law, and its interval.

The fit is a straight line, by least squares, through the logarithms of all costs, short lengths
included, where constant overheads still matter. So a mechanism with large overheads seems to grow
more slowly than it does in the end; the exponent of the last two doublings shows the growth there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

import msgspec

from lra.verdict.ratio import SURE
from lra.verdict.student import quantile

SLACK = 0.15
"""Excess over the declared exponent from which on growth counts as faster."""
LEAST = 3
"""Smallest number of lengths for a fit."""
_END = 4
"""Ratio of the longest length to the one where the last two doublings begin."""


class Growth(msgspec.Struct, frozen=True):
    """Growth of a cost as length to the power of `exponent`."""

    exponent: float
    low: float
    high: float
    """Bounds of the interval of 95 %."""
    least: float
    """Lower bound that is compared with a claim: that of the wider of two intervals, over
    replicates and of the slope."""
    end: float | None
    """Exponent over the last two doublings alone; None where they span all lengths or hold one."""
    lengths: tuple[int, ...]
    replicates: int

    def exceeds(self, declared: float) -> bool:
        """Whether even the lower bound exceeds the declared exponent by more than `SLACK`."""
        return self.least > declared + SLACK


def growth(replicates: Sequence[Mapping[int, float]]) -> Growth | None:
    """Return the growth of costs by length, one mapping per replicate; None below three lengths.

    Costs are positive; others are left out, as are replicates with fewer than three lengths. All
    replicates are fitted over the lengths that they share. With several, the interval is Student's
    over their exponents: it shows how well the exponent repeats, not whether the line is straight.
    With one it is that of the slope, by the distances of the points from the line. With several,
    the interval of the slope of their mean line is compared with a claim where it is wider.
    """
    found = [{n: cost for n, cost in one.items() if n > 0 and cost > 0} for one in replicates]
    found = [one for one in found if len(one) >= LEAST]
    if not found:
        return None
    lengths = sorted(set[int].intersection(*(set(one) for one in found)))
    if len(lengths) < LEAST:
        return None
    slopes = [slope({n: one[n] for n in lengths}) for one in found]
    middle = fmean(slopes)
    mean = {n: math.exp(fmean(math.log(one[n]) for one in found)) for n in lengths}
    margin = bend = quantile(SURE, len(lengths) - 2) * _error_of_slope(mean)
    if len(slopes) > 1:
        error = stdev(slopes) / math.sqrt(len(slopes))
        margin = quantile(SURE, len(slopes) - 1) * error
    last = [n for n in lengths if n * _END >= lengths[-1]]
    several = 1 < len(last) < len(lengths)
    end = fmean(slope({n: one[n] for n in last}) for one in found) if several else None
    return Growth(
        exponent=middle,
        low=middle - margin,
        high=middle + margin,
        least=middle - max(margin, bend),
        end=end,
        lengths=tuple(lengths),
        replicates=len(slopes),
    )


def slope(costs: Mapping[int, float]) -> float:
    """Return the slope of the least-squares line through the logarithms, for two lengths or
    more."""
    x, y = _logarithms(costs)
    middle = fmean(x)
    square = sum((a - middle) ** 2 for a in x)
    return sum((a - middle) * b for a, b in zip(x, y, strict=True)) / square


def _error_of_slope(costs: Mapping[int, float]) -> float:
    """Standard error of the slope, from the distances to the line."""
    x, y = _logarithms(costs)
    steep, middle, height = slope(costs), fmean(x), fmean(y)
    off = sum((b - height - steep * (a - middle)) ** 2 for a, b in zip(x, y, strict=True))
    return math.sqrt(off / (len(x) - 2) / sum((a - middle) ** 2 for a in x))


def _logarithms(costs: Mapping[int, float]) -> tuple[list[float], list[float]]:
    return [math.log(n) for n in costs], [math.log(cost) for cost in costs.values()]
