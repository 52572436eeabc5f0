"""One figure of one cell over the nights: its levels, its steps, and what may have caused them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import cast

import msgspec

from lra.changes.compare import QUANTITIES, Quantity
from lra.changes.counterparts import CONDITIONS, Key
from lra.changes.nights import Night, Point
from lra.report.words import TIMES, Unit, figures, listing, percent, quantity
from lra.verdict.change import (
    ACCURACY_MARGIN,
    BITS_MARGIN,
    COUNT_MARGIN,
    TIME_MARGIN,
    Verdict,
    compare_accuracies,
    compare_counts,
)
from lra.verdict.steps import GRAIN, SHORTEST_LEVEL, Segmentation, Step, new_steps, segment

RECENT = 7
"""Nights within which what was first told is news."""
_SAME_GRAIN = 1e-3
"""Counts and trainings of one seed repeat to the last digit, and by rounding to nearly so."""


class Series(msgspec.Struct, frozen=True):
    """One figure of one cell in one era, with a place for every night."""

    points: tuple[Point | None, ...]
    """None in nights that have no such cell."""
    quantity: Quantity
    course: Segmentation
    """Of logarithms, but of accuracies, which are shares of 1."""
    recent: tuple[Step, ...]
    """Steps first told within the last nights."""

    @property
    def last(self) -> Point:
        """The newest point."""
        return [point for point in self.points if point is not None][-1]

    @property
    def name(self) -> str:
        """Mechanism and cell."""
        return f"{self.last.label} {self.last.cell}".strip()

    @property
    def current(self) -> bool:
        """Whether the series goes on: it has a point within the last nights."""
        return any(point is not None for point in self.points[-RECENT:])

    @property
    def failing(self) -> int:
        """How many of its nights in a row, up to the newest, the cell failed after it had a figure;
        0 where it did not, and of a series that has ended."""
        if not self.current:
            return 0
        there = [point for point in self.points if point is not None]
        ended = next((n for n, point in enumerate(reversed(there)) if not point.failed), 0)
        return ended if any(not point.failed and point.value is not None for point in there) else 0

    def text(self, level: float) -> str:
        """Return a level in its unit, times over the control: `3.1 ×`."""
        if self.quantity.judge is compare_accuracies:
            return f"{percent(level)} %"
        if self.quantity.controlled:
            return f"{figures(math.exp(level))} {TIMES} control"
        value, unit = math.exp(level), self.last.unit
        return quantity(value, cast(Unit, unit)) if unit == "B" else figures(value)

    def size(self, difference: float) -> str:
        """Return a difference of levels in words: `12 % slower`, `3.1 points less accurate`."""
        accuracy = self.quantity.judge is compare_accuracies
        word = self.quantity.worse if (difference > 0) != accuracy else self.quantity.better
        if accuracy:
            return f"{abs(100 * difference):.1f} points {word}"
        share = abs(math.expm1(difference))
        return (
            f"{figures(1 + share)} {TIMES} as {'slow' if word == 'slower' else 'large'}"
            if share >= 1
            else f"{figures(100 * share, most=2)} % {word}"
        )

    def verdict(self, step: Step) -> Verdict:
        """Return whether a step is for the worse.

        Trainings are the same every night, as their seeds are: nights tell where they changed, and
        seeds, paired, whether by more than luck. One seed is ambiguous.
        """
        if not self.quantity.by_seed:
            return "worse" if step.difference > 0 else "better"
        n = next(n for n, other in enumerate(self.course.steps) if other == step)
        before, after = (self._by_seed(n + side) for side in (0, 1))
        found = self.quantity.judge(before, after)
        return found.verdict if found else "ambiguous"

    def _by_seed(self, level: int) -> dict[int, float]:
        own = self.course.levels[level]
        by_seed: dict[int, list[float]] = defaultdict(list)
        for point in self.points[own.start : own.end]:
            for seed, value in (point.seeds if point else {}).items():
                by_seed[seed].append(value)
        return {seed: median(values) for seed, values in by_seed.items()}

    def commits(self, step: Step) -> tuple[str, str]:
        """Return the commits of the last night surely before a step and the first surely after."""
        one, other = self.points[step.last], self.points[step.latest]
        return one.commit if one else "", other.commit if other else ""

    def changed_at(self, step: Step) -> list[Point]:
        """Return the points from which on another version of the mechanism answered, in the nights
        between which the step lies."""
        there = [p for p in self.points[step.last : step.latest + 1] if p is not None]
        return [point for before, point in pairwise(there) if before.mechanism != point.mechanism]


def series_of(nights: Sequence[Night]) -> tuple[list[Series], list[str]]:
    """Return the series in the order of cells, and of those that have several which conditions
    differ, in words."""
    found: dict[Key, dict[Key, dict[int, Point]]] = defaultdict(lambda: defaultdict(dict))
    for number, night in enumerate(nights):
        for point in night.points:
            found[point.series][point.era][number] = point
    series = [
        _one([own.get(number) for number in range(len(nights))])
        for eras in found.values()
        for own in eras.values()
    ]
    words = [_differing(list(eras)) for eras in found.values() if len(eras) > 1]
    ordered = sorted(series, key=lambda one: (one.last.place, one.name, one.quantity.name))
    return ordered, words


def _one(points: list[Point | None]) -> Series:
    metric = next(point.metric for point in points if point is not None)
    quantity = QUANTITIES[metric]
    margin, grain = math.log1p(COUNT_MARGIN), _SAME_GRAIN
    if quantity.controlled:
        margin, grain = math.log1p(TIME_MARGIN), GRAIN
    elif quantity.by_seed:
        margin = (
            ACCURACY_MARGIN if quantity.judge is compare_accuracies else math.log1p(BITS_MARGIN)
        )
    values = [_scaled(point, quantity) for point in points]
    told = segment(values, margin, grain)
    return Series(tuple(points), quantity, told, new_steps(values, told, RECENT, margin, grain))


def _scaled(point: Point | None, quantity: Quantity) -> float | None:
    if point is None or point.value is None:
        return None
    if quantity.judge is compare_accuracies:
        return point.value
    # A count of nothing, as of the state of what has none, is taken as one.
    return math.log(max(point.value, 1.0) if quantity.judge is compare_counts else point.value)


def _differing(eras: list[Key]) -> str:
    """`another machine and another version of torch`."""
    names = [*(name for name in CONDITIONS if name != "config"), "torch"]
    differing = [
        CONDITIONS[name]
        for name, values in zip(names, zip(*eras, strict=True), strict=True)
        if len(set(values)) > 1
    ]
    return listing(list(dict.fromkeys(differing)))


def failing_is_told(series: Series) -> bool:
    """Whether a cell has failed in enough nights to be told, and not in so many that it is old."""
    return SHORTEST_LEVEL <= series.failing < SHORTEST_LEVEL + RECENT
