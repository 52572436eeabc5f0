"""Repeatability of a cost: its ratio to the control, in two sweeps of one build.

The figure of a process is its cost over the control that frames it. Two sweeps agree on a cell
where their intervals overlap. Two honest 95 % intervals of the same value overlap in 99.5 % of
cases, with 3 processes a side as with 12 (simulated), so that 95 % of cells is a promise that can
be kept. Where it is broken, the processes of a sweep have more in common than their build. An
overlap is no proof of equality: a real difference may hide in it. Differences are therefore found
by a sharper rule, the gate's: processes in pairs, one of each sweep, and the lower 95 % bound of
their ratio above 1. It calls 5 % of equal cells slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median, stdev

import msgspec

from lra.verdict.ratio import SURE, Ratio, ratio_of_logarithms
from lra.verdict.student import bisect, detection_power, deviation_factor, half_width

LONG = 1024
"""Length from which on the width of intervals is summarised."""
POWER = 0.95
"""Share of cells on which the smallest resolved difference is found."""
TARGET = 0.1
"""Difference that a machine should resolve, as a share."""
AGREEMENT = 0.95
"""Share of cells on which two sweeps of one build should agree."""
_WIDEST = 10.0
"""Largest difference in the search, as a logarithm: a factor of 22,000."""


class ControlledCost(msgspec.Struct, frozen=True):
    """Cost and controls of one process, in seconds."""

    cost: float
    before: float
    """Time of the control before the cost was measured."""
    after: float

    @property
    def ratio(self) -> float:
        """Return the cost over the geometric mean of the control before and after."""
        return self.cost / math.sqrt(self.before * self.after)


ControlledCosts = Mapping[int, ControlledCost]
"""Costs of one cell in one sweep, by replicate."""


class RepeatedCell(msgspec.Struct, frozen=True):
    """One cell in two sweeps."""

    length: int
    first: Ratio
    """Ratio of the first sweep to the control."""
    second: Ratio
    between: Ratio
    """Ratio of the second sweep to the first, in pairs."""
    spread: float
    """Standard deviation of the logarithms of the pairs' ratios."""

    @property
    def agrees(self) -> bool:
        """Whether the intervals of the two sweeps overlap."""
        return not are_disjoint(self.first, self.second)

    @property
    def slower(self) -> bool:
        """Whether the gate's rule calls the second sweep slower."""
        return math.log(self.between.value) > half_width(SURE, self.spread, self.between.pairs)


class Repeatability(msgspec.Struct, frozen=True):
    """Repeatability of a machine, by two sweeps of one build."""

    cells: int
    agreeing: int
    alarms: int
    """Number of cells that the gate's rule calls slower, though they are equal."""
    width: float | None
    """Median width of the intervals at lengths of 1024 and more, as a share of the figure."""
    smallest: float
    """Smallest difference that is found, as a share: 0.1 is 10 %."""
    smallest_of_most: float
    """Smallest difference that is found with the largest number of pairs."""

    @property
    def agree(self) -> bool:
        """Whether sweeps agree on 95 % of cells, the count rounded down."""
        return self.agreeing >= math.floor(AGREEMENT * self.cells)

    @property
    def resolves(self) -> bool:
        """Whether differences of 10 % are found, and the sweeps agree."""
        return self.agree and self.smallest <= TARGET


def control_ratio(processes: ControlledCosts) -> Ratio | None:
    """Return the ratio of a cost to its control; None where no process has both.

    A process with a time that is not positive is left out.
    """
    found = _ratios(processes)
    return ratio_of_logarithms([math.log(ratio) for ratio in found.values()]) if found else None


def are_disjoint(one: Ratio, other: Ratio) -> bool:
    """Whether two ratios have intervals that do not overlap."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low or other.high < one.low


def median_width(ratios: Iterable[Ratio]) -> float | None:
    """Return the median width of the known intervals, as a share of the figure."""
    widths = [ratio.width for ratio in ratios if ratio.width is not None]
    return median(widths) if widths else None


def repeated_cell(
    length: int, first: ControlledCosts, second: ControlledCosts
) -> RepeatedCell | None:
    """Return one cell in two sweeps; None for fewer than two pairs."""
    one, other = _ratios(first), _ratios(second)
    pairs = [math.log(other[r] / one[r]) for r in sorted(one.keys() & other.keys())]
    if len(pairs) < 2:
        return None
    return RepeatedCell(
        length=length,
        first=ratio_of_logarithms([math.log(ratio) for ratio in one.values()]),
        second=ratio_of_logarithms([math.log(ratio) for ratio in other.values()]),
        between=ratio_of_logarithms(pairs),
        spread=stdev(pairs),
    )


def repeatability(cells: Sequence[RepeatedCell], most: int) -> Repeatability:
    """Judge a machine by two sweeps of at least one cell; `most` is the largest number of pairs to
    ask for."""
    long = [ratio for c in cells if c.length >= LONG for ratio in (c.first, c.second)]
    return Repeatability(
        cells=len(cells),
        agreeing=sum(cell.agrees for cell in cells),
        alarms=sum(cell.slower for cell in cells),
        width=median_width(long),
        smallest=smallest_difference(cells),
        smallest_of_most=smallest_difference(cells, most),
    )


def smallest_difference(cells: Sequence[RepeatedCell], pairs: int | None = None) -> float:
    """Return the smallest difference that the gate's rule finds on 95 % of cells like these.

    With `pairs` of processes each; None for as many as they had. Few pairs estimate noise badly:
    each cell's own estimate is multiplied by a factor that makes it too low in one self-test in
    twenty. Only half of the cells' pairs count towards that factor, since differences are missed on
    the noisier cells. Cells seem to vary more among each other than they do, which makes the result
    a little larger still.
    """
    careful = deviation_factor(SURE, sum(cell.between.pairs - 1 for cell in cells) / 2)

    def is_found(difference: float) -> bool:
        found = (
            detection_power(SURE, difference, careful * cell.spread, pairs or cell.between.pairs)
            for cell in cells
        )
        return fmean(found) >= POWER

    return math.expm1(bisect(0.0, _WIDEST, is_found))


def _ratios(processes: ControlledCosts) -> dict[int, float]:
    return {
        replicate: process.ratio
        for replicate, process in sorted(processes.items())
        if min(process.cost, process.before, process.after) > 0
    }
