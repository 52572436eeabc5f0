"""The ratio of two costs over pairs of processes, with its interval.

A process is the unit: the samples inside one share its luck, so that more of them say nothing of
the next. Costs of one replicate are measured in one round, so that a slow spell of the machine is
in both; the logarithms of their ratios are treated as a normal sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean, stdev

import msgspec

from lra.verdict.student import quantile

SURE = 0.95
"""Probability of every interval; one minus it is the level of the tests."""


class Ratio(msgspec.Struct, frozen=True):
    """One cost over another."""

    value: float
    """Geometric mean over the pairs."""
    low: float | None
    high: float | None
    """Bounds of Student's interval; None for a single pair, which says nothing of the next."""
    pairs: int

    @property
    def width(self) -> float | None:
        """Return the distance between the bounds, as a share of the value."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / self.value


def ratio(own: Mapping[int, float], other: Mapping[int, float]) -> Ratio | None:
    """Return own over other, paired by replicate; None where no replicate has both.

    Costs are positive; a pair with one that is not is left out.
    """
    shared = [r for r in own if other.get(r, 0.0) > 0 and own[r] > 0]
    return ratio_of_logarithms([math.log(own[r] / other[r]) for r in shared]) if shared else None


def ratio_of_logarithms(found: list[float]) -> Ratio:
    """Return the ratio with these logarithms, one per pair."""
    middle = fmean(found)
    if len(found) == 1:
        return Ratio(math.exp(middle), None, None, 1)
    margin = quantile(SURE, len(found) - 1) * stdev(found) / math.sqrt(len(found))
    return Ratio(math.exp(middle), math.exp(middle - margin), math.exp(middle + margin), len(found))
