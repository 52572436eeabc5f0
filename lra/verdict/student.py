"""Student's distribution: widths of intervals, and the power to detect differences."""

from __future__ import annotations

import math
from collections.abc import Callable

_CERTAIN = 20.0
"""Standard errors beyond which a difference is surely found; scipy has no figures far beyond."""
_HALVINGS = 40
"""Number of halvings of a searched interval: to a millionth of a millionth of it."""


def quantile(sure: float, freedom: float) -> float:
    """Return the distance, in standard errors, that holds the true value with probability `sure`,
    on both sides."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + sure) / 2))


def power(sure: float, freedom: int, distance: float) -> float:
    """Return the probability that the lower bound of a value `distance` above 0 lies above 0.

    The bound is below the true value with probability `sure`; `distance` is in standard errors.
    """
    from scipy.special import nctdtr, stdtrit

    return 1 - float(nctdtr(freedom, min(distance, _CERTAIN), stdtrit(freedom, sure)))


def detection_power(sure: float, difference: float, spread: float, pairs: int) -> float:
    """Return the probability that `pairs` show a difference: that the lower bound of their mean
    lies above 0.

    The bound is below the true mean with probability `sure`; `spread` is the standard deviation of
    a pair's difference.
    """
    if spread == 0:
        return 1.0 if difference > 0 else 0.0
    return power(sure, pairs - 1, difference * math.sqrt(pairs) / spread)


def bisect(low: float, high: float, is_enough: Callable[[float], bool]) -> float:
    """Return, by bisection, the least value between two that is enough, where all above it are;
    `high` where none is."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def deviation_factor(sure: float, freedom: float) -> float:
    """Return the factor by which an estimated standard deviation is, with probability `sure`, no
    smaller than the true one."""
    from scipy.special import chdtri

    return math.sqrt(freedom / float(chdtri(freedom, sure)))


def half_width(sure: float, spread: float, number: int) -> float:
    """Return the half-width of one-sided bounds on a mean.

    The mean less this half lies below the true mean with probability `sure`, and the mean plus it
    above, with the same probability. `spread` is the sample's standard deviation, `number` its
    size.
    """
    return quantile(2 * sure - 1, number - 1) * spread / math.sqrt(number)


def two_sided_p(distance: float, freedom: float) -> float:
    """Return the probability that a value with mean 0 is as far from it, in standard errors."""
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(distance)))
