"""Steps in a figure over many nights, between levels of several nights each.

The segmentation is piecewise constant, with the least sum of absolute deviations plus a penalty for
each step (the L1-Potts functional: Weinmann, Storath and Demaret, SIAM J. Numer. Anal. 53(1), 2015,
arXiv:1207.4642). Its levels are medians, so that an outlying night moves none; deviations are
capped, so that two outlying nights are no level of their own (a bounded loss: Fearnhead and
Rigaill, JASA 114, 2019). The optimum is exact, by dynamic programming over the last step (optimal
partitioning: Jackson et al., IEEE Signal Process. Lett. 12(2), 2005; Killick, Fearnhead and Eckley
prune it, JASA 107, 2012) and over the values as levels, as medians are among them.

The penalty grows with the logarithm of the number of nights, as in Schwarz's criterion (BIC). Its
size is found by simulation: nights in a row are alike, as a machine drifts over days, and to a
criterion for independent nights similar ones look like a level. asv's `step_detect` has the same
aim; it searches the penalty, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from lra.verdict.change import TIME_MARGIN
from lra.verdict.ratio import SURE
from lra.verdict.student import deviation_factor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHORTEST_LEVEL = 3
"""Smallest number of nights in a level; fewer at the end are not yet a step."""
PENALTY = 6.0
"""Penalty of a step, times the logarithm of the number of nights, in mean absolute deviations.
Chosen so that about three of 1000 sequences of 60 nights without a step, on a noisy machine, have
one."""
GRAIN = 0.003
"""Smallest noise assumed for times, as a logarithm, however close a few nights were."""
FAR = 2.5
"""Standard deviations from the last level beyond which nights at the end are pointed out."""
_CAP = 10.0
"""Largest deviation of a night that counts, in mean absolute deviations. It is below the penalty
for six nights: to two outlying nights at the end a level of their own, which needs a third night,
gains less than it costs."""
_ALIKE = 2.0
"""Difference in cost, in mean absolute deviations, within which places of a step are as likely."""
_NORMAL = 0.6745
"""Median absolute value of a normal deviate; its mean is the next."""
_MEAN = math.sqrt(2 / math.pi)
_EFFICIENCY = 0.37
"""Degrees of freedom per night of the median deviation's estimate, relative to the standard
deviation's."""


class Level(msgspec.Struct, frozen=True):
    """Nights of one level, by their places in the sequence."""

    start: int
    end: int
    """Place after the last."""
    value: float
    """Median of the level."""
    nights: int
    """Number of nights with a value."""


class Step(msgspec.Struct, frozen=True):
    """Step from one level to another."""

    at: int
    """First night of the new level."""
    earliest: int
    """First and last of the nights at which the new level may as well have begun, `at` among
    them."""
    latest: int
    last: int
    """Last night with a value before `earliest`."""
    before: float
    after: float
    noise: float
    """Standard deviation of a night."""

    @property
    def difference(self) -> float:
        """Return the new level less the old."""
        return self.after - self.before

    @property
    def size(self) -> float:
        """Return the step in standard deviations of a night."""
        return abs(self.difference) / self.noise


class Segmentation(msgspec.Struct, frozen=True):
    """A sequence of nights as levels and steps."""

    levels: tuple[Level, ...]
    """Levels in order; none for a sequence without values."""
    steps: tuple[Step, ...]
    noise: float | None
    """Standard deviation of a night, rather too large than too small; None for fewer than four
    nights."""
    outliers: int = 0
    """Number of nights at the end that lie off the last level, on one side, and are too few or too
    close to be a level of their own."""


def segment(
    values: Sequence[float | None], margin: float = math.log1p(TIME_MARGIN), grain: float = GRAIN
) -> Segmentation:
    """Return the levels and steps of one value per night, such as logarithms of ratios.

    None or a value that is not finite is a night without a value. A step of at most `margin` is too
    small to matter; `grain` is the least noise assumed for a night. Fewer than six values have no
    step.
    """
    import numpy as np

    there = [n for n, value in enumerate(values) if value is not None and math.isfinite(value)]
    y = np.array([values[n] for n in there], dtype=float)
    if not there:
        return Segmentation((), (), None)
    if len(y) < 4:
        level = Level(there[0], there[-1] + 1, float(np.median(y)), len(y))
        return Segmentation((level,), (), None)
    noise = _noise_of(y, grain)
    pieces = _merge_close(y, _optimal_partition(y, noise), margin)
    levels = [float(np.median(y[a:b])) for a, b in pieces]
    return Segmentation(
        levels=tuple(
            Level(there[a], there[b - 1] + 1, level, b - a)
            for (a, b), level in zip(pieces, levels, strict=True)
        ),
        steps=tuple(_step(y, there, pieces[n : n + 2], noise) for n in range(len(pieces) - 1)),
        noise=noise,
        outliers=_trailing_outliers(y, levels[-1], max(margin, FAR * noise)),
    )


def new_steps(
    values: Sequence[float | None],
    told: Segmentation,
    recent: int,
    margin: float = math.log1p(TIME_MARGIN),
    grain: float = GRAIN,
) -> tuple[Step, ...]:
    """Return the steps of a segmentation that were not yet found before its last `recent` nights.

    A small step is found many nights after it was made: by its date alone it would never be news.
    """
    if not told.steps:
        return ()
    known = segment(values[: max(len(values) - recent, 0)], margin, grain).steps
    return tuple(step for step in told.steps if not any(_is_same_step(step, old) for old in known))


def _is_same_step(one: Step, other: Step) -> bool:
    """Whether two steps are the same: in one direction, at places as likely."""
    near = (
        one.earliest - SHORTEST_LEVEL <= other.latest
        and other.earliest - SHORTEST_LEVEL <= one.latest
    )
    return near and (one.difference > 0) == (other.difference > 0)


def _noise_of(y: NDArray[np.float64], grain: float) -> float:
    """Standard deviation of a night, by the differences of neighbours, few of which span a step."""
    import numpy as np

    found = float(np.median(np.abs(np.diff(y)))) / (_NORMAL * math.sqrt(2))
    return max(grain, deviation_factor(SURE, _EFFICIENCY * (len(y) - 1)) * found)


def _optimal_partition(y: NDArray[np.float64], noise: float) -> list[tuple[int, int]]:
    """Best partition into pieces of at least `SHORTEST_LEVEL` values, as (start, end)."""
    import numpy as np

    count, penalty = len(y), PENALTY * math.log(len(y))
    levels = np.unique(y)
    off = np.minimum(np.abs(y[:, None] - levels) / (_MEAN * noise), _CAP)
    total = np.vstack([np.zeros(len(levels)), np.cumsum(off, axis=0)])
    # For the first n values: the least cost, and the start of the last piece.
    best, last = np.full(count + 1, np.inf), np.zeros(count + 1, dtype=int)
    best[0] = -penalty
    # For each level of the last piece: its cost with all before it, and its start.
    cost, start = np.full(len(levels), np.inf), np.zeros(len(levels), dtype=int)
    for end in range(SHORTEST_LEVEL, count + 1):
        first = end - SHORTEST_LEVEL
        cost += off[end - 1]
        begun = best[first] + penalty + total[end] - total[first]
        start[begun < cost] = first
        np.minimum(cost, begun, out=cost)
        level = cost.argmin()
        best[end], last[end] = cost[level], start[level]
    pieces, end = [], count
    while end:
        pieces.append((int(last[end]), end))
        end = int(last[end])
    return pieces[::-1]


def _merge_close(
    y: NDArray[np.float64], pieces: list[tuple[int, int]], margin: float
) -> list[tuple[int, int]]:
    """Join neighbours whose levels are at most `margin` apart, the nearest first."""
    import numpy as np

    while len(pieces) > 1:
        apart = np.abs(np.diff([np.median(y[a:b]) for a, b in pieces]))
        least = int(apart.argmin())
        if apart[least] > margin:
            break
        pieces = [*pieces[:least], (pieces[least][0], pieces[least + 1][1]), *pieces[least + 2 :]]
    return pieces


def _step(
    y: NDArray[np.float64], there: list[int], pieces: list[tuple[int, int]], noise: float
) -> Step:
    """Step between two pieces, with the places that are as likely."""
    import numpy as np

    (first, middle), (_, end) = pieces
    before, after = (float(np.median(y[a:b])) for a, b in pieces)
    part = y[first:end]
    gain = (np.abs(part - before) - np.abs(part - after)) / (_MEAN * noise)
    # Cost of beginning the new level at each of the values, up to a constant.
    cost = np.concatenate([[0.0], np.cumsum(gain)])[:-1]
    likely = np.flatnonzero(cost <= cost[middle - first] + _ALIKE)
    likely = likely[(likely > 0)]
    low, high = first + int(likely.min()), first + int(likely.max())
    return Step(
        at=there[middle],
        earliest=there[low],
        latest=there[high],
        last=there[low - 1],
        before=before,
        after=after,
        noise=noise,
    )


def _trailing_outliers(y: NDArray[np.float64], level: float, far: float) -> int:
    """Number of values at the end that lie further than `far` off the level, all on one side."""
    off = y[::-1] - level
    for sign in (1, -1):
        beyond = sign * off > far
        if beyond[0]:
            return len(y) if beyond.all() else int(beyond.argmin())
    return 0
