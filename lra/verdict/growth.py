"""How a cost grows with length: the exponent of a power law, and how sure it is.

The fit is a straight line, by least squares, through the logarithms of all costs at hand, short
lengths included, where what does not grow still counts. So a mechanism whose overheads are large
seems to grow more slowly than it does in the end; the exponent of the last two doublings says what
it does there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

import msgspec

from lra.verdict.ratio import SURE
from lra.verdict.student import quantile

SLACK = 0.15
"""An exponent must exceed the declared one by more than this before it counts as more."""
LEAST = 3
"""Lengths; below that there is no fit."""
_END = 4
"""The last two doublings begin at the longest length over this."""


class Growth(msgspec.Struct, frozen=True):
    """A cost grows as length to the power of `exponent`."""

    exponent: float
    low: float
    high: float
    """Bounds of the interval of 95 %."""
    least: float
    """The lower bound that is held against a claim: of the wider of two intervals, that over
    replicates and that of the slope."""
    end: float | None
    """Exponent over the last two doublings alone; None where they span all lengths or hold one."""
    lengths: tuple[int, ...]
    replicates: int

    def exceeds(self, declared: float) -> bool:
        """Whether even the least is more than the declared exponent, by more than `SLACK`."""
        return self.least > declared + SLACK


def growth(replicates: Sequence[Mapping[int, float]]) -> Growth | None:
    """Return the growth of costs by length, one mapping per replicate; None below three lengths.

    Costs are positive; others are left out, as are replicates with fewer than three lengths. All
    replicates are fitted over the lengths that they share. With several, the interval is Student's
    over their exponents: it says how well the exponent repeats, not whether the line is straight.
    With one it is that of the slope, from how far the points lie from the line; and with several
    that of the slope of their mean line still counts against a claim, where it is wider.
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
    """Return the slope of the least-squares line through the logarithms, of two lengths or more."""
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
