"""One figure of one cell over the nights: its levels, its steps, and their possible causes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import msgspec

from lra.changes.measurements import Key, Quantity
from lra.changes.nights import ERA, SERIES, Night, Point
from lra.verdict.change import Verdict
from lra.verdict.steps import GRAIN, Segmentation, Step, new_steps, segment

RECENT = 7
"""Nights for which a step counts as news."""
_SAME_GRAIN = 1e-3
"""Grain of figures that repeat but for rounding: counts, and trainings of one seed."""


class Series(msgspec.Struct, frozen=True):
    """One figure of one cell in one era, with a place for every night."""

    points: tuple[Point | None, ...]
    """Points by night; None in nights without such a cell."""
    quantity: Quantity
    course: Segmentation
    """Levels and steps: of logarithms, but of accuracies as they are."""
    recent: tuple[Step, ...]
    """Steps first detected within the last `RECENT` nights."""

    @property
    def last(self) -> Point:
        """The newest point."""
        return [point for point in self.points if point is not None][-1]

    @property
    def key(self) -> Key:
        """Key of the question and the mechanism."""
        return self.last.measurement.key(SERIES)

    @property
    def current(self) -> bool:
        """Whether the series goes on: it has a point within the last nights."""
        return any(point is not None for point in self.points[-RECENT:])

    @property
    def failing(self) -> int:
        """Nights in a row, up to the newest, in which the cell failed after it had a figure; 0
        where it did not, and for a series that has ended."""
        if not self.current:
            return 0
        there = [point for point in self.points if point is not None]
        ended = next((n for n, point in enumerate(reversed(there)) if not point.endings), 0)
        return ended if any(not point.endings and point.value is not None for point in there) else 0

    @property
    def failing_since(self) -> int:
        """Index of the first night of its failure."""
        return [n for n, point in enumerate(self.points) if point is not None][-self.failing]

    def verdict(self, step: Step) -> Verdict:
        """Return whether a step is for the worse.

        Trainings repeat from night to night, as their seeds do: nights tell where they changed, and
        paired seeds whether by more than luck. One seed is ambiguous.
        """
        if not self.quantity.by_seed:
            return "worse" if step.difference > 0 else "better"
        n = self.course.steps.index(step)
        found = self.quantity.judge(self._by_seed(n), self._by_seed(n + 1))
        return found.verdict if found else "ambiguous"

    def _by_seed(self, level: int) -> dict[int, float]:
        own = self.course.levels[level]
        by_seed: dict[int, list[float]] = defaultdict(list)
        for point in self.points[own.start : own.end]:
            for seed, value in (point.measurement.values if point else {}).items():
                by_seed[seed].append(value)
        return {seed: median(values) for seed, values in by_seed.items()}

    def commits(self, step: Step) -> tuple[str, str]:
        """Return the commits of the last night surely before a step and the first surely after."""
        one, other = self.points[step.last], self.points[step.latest]
        return one.commit if one else "", other.commit if other else ""

    def changed_at(self, step: Step) -> list[Point]:
        """Return the points at which another version of the mechanism first answered, in the nights
        around the step."""
        there = [p for p in self.points[step.last : step.latest + 1] if p is not None]
        return [
            point
            for before, point in pairwise(there)
            if before.row.mechanism_version != point.row.mechanism_version
        ]


def series_of(nights: Sequence[Night]) -> tuple[list[Series], list[tuple[str, ...]]]:
    """Return the series in the order of cells, and for each figure with several series the names of
    the conditions that differ."""
    found: dict[Key, dict[Key, dict[int, Point]]] = defaultdict(dict)
    for number, night in enumerate(nights):
        for point in night.points:
            own = point.measurement
            found[own.key(SERIES)].setdefault(own.key(ERA), {})[number] = point
    series = [
        _series([own.get(number) for number in range(len(nights))])
        for eras in found.values()
        for own in eras.values()
    ]
    differing = [_differing(list(eras)) for eras in found.values() if len(eras) > 1]
    # In the order of cells; nights that lack some have left them in that of their first night.
    return sorted(series, key=lambda one: (one.last.measurement.place, repr(one.key))), differing


def _series(points: list[Point | None]) -> Series:
    quantity = next(point.measurement.quantity for point in points if point is not None)
    values = [
        None if point is None or point.value is None else quantity.scaled(point.value)
        for point in points
    ]
    margin = quantity.margin if quantity.is_share else math.log1p(quantity.margin)
    grain = GRAIN if quantity.controlled else _SAME_GRAIN
    course = segment(values, margin, grain)
    recent = new_steps(values, course, RECENT, margin, grain)
    return Series(tuple(points), quantity, course, recent)


def _differing(eras: list[Key]) -> tuple[str, ...]:
    sides = zip(*eras, strict=True)
    return tuple(name for name, own in zip(ERA, sides, strict=True) if len(set(own)) > 1)
