"""Crossover: the length from which a mechanism costs less than the exact one, by replicate.

The ratio of the two costs is interpolated between lengths by straight lines in its logarithm and
that of length. It crosses where it falls below one for good: the shortest length after which it
stays there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import msgspec

_BEFORE, _NEVER = -math.inf, math.inf
"""Logarithms of a crossing before the shortest length, and of none."""


class Figure(msgspec.Struct, frozen=True):
    """One measured cost with its quartiles, where it has any."""

    value: float
    q1: float | None = None
    q3: float | None = None


Costs = Mapping[int, Mapping[int, Figure]]
"""Costs by replicate, then by length."""


class Crossover(msgspec.Struct, frozen=True):
    """Length from which one cost stays below another; it need not be a measured one.

    `at`, `low` and `high` are 0 where it is below at every length, and infinite where it is not
    below at the longest.
    """

    at: float
    low: float | None
    high: float | None
    """Bounds of `at`; None where its error is unknown."""
    interval: Literal["replicates", "quartiles", "none"]
    """Kind of the bounds: smallest and greatest crossing over replicates, or crossings of the two
    ratios of opposite quartiles."""
    lengths: tuple[int, ...]
    """Lengths compared."""
    beaten: tuple[int, ...]
    """Lengths among these at which the exact mechanism had run out of memory."""

    @property
    def jumps(self) -> bool:
        """Whether it is below only where the exact mechanism had run out of memory."""
        return any(math.isclose(self.at, n) for n in self.beaten)


def crossover(own: Costs, exact: Costs, gone: Collection[int] = ()) -> Crossover | None:
    """Return where `own` falls below `exact`; None where no replicate has both at one length.

    At the lengths in `gone` the exact mechanism ran out of memory: any figure there beats it.
    Replicates are compared number by number, over the lengths that all of them share.
    """
    shared = sorted(own.keys() & exact.keys() if exact else own)
    if not shared:
        return None
    whole = set[int].intersection(*(set(own[r]) for r in shared))
    beaten = whole & set(gone)
    other = {r: exact.get(r, {}) for r in shared}
    lengths = sorted(n for n in whole if n in beaten or all(n in other[r] for r in shared))
    if not lengths:
        return None

    def crossing(r: int, side: int = 0) -> float:
        ratios = [
            _BEFORE
            if n in beaten
            else _log_ratio(_quartile(own[r][n], side), _quartile(other[r][n], -side))
            for n in lengths
        ]
        return _crossing(lengths, ratios)

    found = sorted(map(crossing, shared))
    at, low, high = _median(found), None, None
    interval: Literal["replicates", "quartiles", "none"] = "none"
    if len(found) > 1:
        interval, low, high = "replicates", found[0], found[-1]
    else:
        (only,) = shared
        compared = [costs[only][n] for costs in (own, other) for n in lengths if n not in beaten]
        if all(figure.q1 is not None and figure.q3 is not None for figure in compared):
            interval, low, high = "quartiles", crossing(only, -1), crossing(only, 1)
    return Crossover(
        at=math.exp(at),
        low=None if low is None else math.exp(low),
        high=None if high is None else math.exp(high),
        interval=interval,
        lengths=tuple(lengths),
        beaten=tuple(sorted(beaten)),
    )


def _quartile(figure: Figure, side: int) -> float:
    """Lower quartile, figure itself or upper quartile, for -1, 0 and 1."""
    found = (figure.q1, figure.value, figure.q3)[side + 1]
    return figure.value if found is None else found


def _log_ratio(above: float, below: float) -> float:
    """Logarithm of a ratio; zero over zero is a draw."""
    if above == below:
        return 0.0
    if not above or not below:
        return _NEVER if above else _BEFORE
    return math.log(above / below)


def _crossing(lengths: Sequence[int], ratios: Sequence[float]) -> float:
    """Logarithm of the length from which the ratios' logarithms stay below zero."""
    above = [place for place, ratio in enumerate(ratios) if ratio >= 0]
    if not above:
        return _BEFORE
    last = above[-1]
    if last + 1 == len(lengths):
        return _NEVER
    left, right = math.log(lengths[last]), math.log(lengths[last + 1])
    if not (math.isfinite(ratios[last]) and math.isfinite(ratios[last + 1])):
        # Its place between the two is unknown.
        return right
    return left + (right - left) * ratios[last] / (ratios[last] - ratios[last + 1])


def _median(found: Sequence[float]) -> float:
    """Median of sorted logarithms; where one of the two in the middle is infinite, the later."""
    low, high = found[(len(found) - 1) // 2], found[len(found) // 2]
    return (low + high) / 2 if math.isfinite(low) and math.isfinite(high) else high
