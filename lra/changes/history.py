"""Many nights as a value: the series of every cell, and what of them is to be told."""

from __future__ import annotations

from functools import cached_property

import msgspec

from lra.changes.series import Series, failing_is_told
from lra.verdict.change import Verdict
from lra.verdict.steps import SHORTEST_LEVEL, Step


class Told(msgspec.Struct, frozen=True):
    """A step of one series, or a cell that fails where it had a figure."""

    series: Series
    verdict: Verdict
    step: Step | None = None
    """None of a cell that fails."""
    recent: bool = False
    """First told within the last `RECENT` nights."""

    @property
    def changed(self) -> Step:
        """The step; not to be asked of a cell that fails."""
        assert self.step is not None
        return self.step


class History(msgspec.Struct, frozen=True, dict=True):
    """What the nights say."""

    nights: tuple[str, ...]
    """Names: dates, with the time where a date has several."""
    series: tuple[Series, ...]
    notes: tuple[str, ...]
    """What is missing or could not be read, in words."""

    @cached_property
    def told(self) -> tuple[Told, ...]:
        """Every step and cell that fails, the newest first, then the largest."""
        found = [
            Told(one, one.verdict(step), step, step in one.recent)
            for one in self.series
            for step in one.course.steps
        ]
        # Of the seeds that both levels have: another number of them may be all that changed.
        found = [one for one in found if one.verdict != "same"]
        ordered = sorted(found, key=lambda one: (-one.changed.at, -one.changed.size))
        failing = [Told(one, "worse", None, True) for one in self._failing if failing_is_told(one)]
        return (*failing, *ordered)

    @property
    def conclusive(self) -> bool:
        """Whether a series that goes on has as many nights as a step takes."""
        nights = [sum(lv.nights for lv in one.course.levels) for one in self.series if one.current]
        return max(nights, default=0) >= 2 * SHORTEST_LEVEL

    @property
    def worse(self) -> list[Told]:
        """What became worse, first told within the last `RECENT` nights: a reason to fail."""
        return [one for one in self.told if one.verdict == "worse" and one.recent]

    @property
    def better(self) -> list[Told]:
        """What became better, told as lately."""
        return [one for one in self.told if one.verdict == "better" and one.recent]

    @property
    def _failing(self) -> list[Series]:
        """Series of cells that fail now: of each cell the first figure that it had."""
        first: dict[object, Series] = {}
        for one in self.series:
            if one.failing:
                first.setdefault((one.last.label, one.last.cell), one)
        return list(first.values())

    @property
    def outliers(self) -> list[Series]:
        """Series whose last nights lie off their level, or failed, and are too few to tell."""
        off = [
            one for one in self.series if one.current and one.course.outliers and not one.failing
        ]
        return [one for one in self._failing if one.failing < SHORTEST_LEVEL] + off
