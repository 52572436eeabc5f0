"""What a quality table is of: accuracies, or bits per byte; how they are written, and which is the
best."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from lra.report.words import figures, percent
from lra.verdict.accuracy import mean_interval


class Score(msgspec.Struct, frozen=True):
    """The figure that a task is quoted by."""

    metric: str
    lower: bool = False
    """Whether the less is the better."""

    def text(self, value: float, spread: float | None = None) -> str:
        """Return a mean with the digits that its spread supports, an accuracy in percent."""
        return figures(value, spread) if self.lower else percent(value, spread)

    def spread(self, value: float) -> str:
        """Return a standard deviation."""
        return figures(value, most=2) if self.lower else percent(value)

    def gain(self, value: float) -> float:
        """Return what is the larger, the better."""
        return -value if self.lower else value

    def interval(self, seeds: Sequence[float], rows: int) -> tuple[float, float] | None:
        """Return the interval of 95 % of the mean over seeds, on so many test rows; None of one."""
        if self.lower:
            return mean_interval(seeds, most=math.inf)
        return mean_interval(seeds, 1 / rows)


ACCURACY = Score("test_accuracy")
BITS = Score("bits_per_byte", lower=True)
SCORES = {score.metric: score for score in (ACCURACY, BITS)}
"""By metric; every training has one of them."""
