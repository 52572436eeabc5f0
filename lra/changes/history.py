"""The history of many nights: the series of every cell, and their steps that matter."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path

import msgspec

from lra.changes.nights import SERIES, Night, nights
from lra.changes.series import RECENT, Series, series_of
from lra.verdict.change import Verdict
from lra.verdict.steps import SHORTEST_LEVEL, Step


class Event(msgspec.Struct, frozen=True):
    """A step of one series, or a cell that fails where it had a figure."""

    series: Series
    verdict: Verdict
    step: Step | None = None
    """The step; None for a cell that fails."""
    recent: bool = False
    """Whether it was first detected within the last `RECENT` nights."""


class History(msgspec.Struct, frozen=True, dict=True):
    """Series over the nights of a folder."""

    nights: tuple[Night, ...]
    unread: dict[str, str]
    """Sub-folders that are no night, with the reason."""
    series: tuple[Series, ...]
    eras: tuple[tuple[str, ...], ...]
    """Conditions that differ between the series of one figure, for each figure with several."""

    @cached_property
    def dates(self) -> list[str]:
        """The nights as dates, with the time where a date has several."""
        started = [night.started for night in self.nights]
        days = Counter(one[:10] for one in started)
        return [one[:10] if days[one[:10]] == 1 else one[:16].replace("T", " ") for one in started]

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Cells that fail, then every step, newest first, then largest."""
        steps = [(step, one) for one in self.series for step in one.course.steps]
        steps.sort(key=lambda found: (-found[0].at, -found[0].size))
        # A failure is told after so many nights, and after more it is old.
        told = range(SHORTEST_LEVEL, SHORTEST_LEVEL + RECENT)
        found = [Event(one, "worse", None, True) for one in self._failing if one.failing in told]
        found += [Event(one, one.verdict(step), step, step in one.recent) for step, one in steps]
        # A step may come of another number of seeds alone: the verdict pairs those that both levels
        # have.
        return tuple(one for one in found if one.verdict != "same")

    @property
    def is_conclusive(self) -> bool:
        """Whether some current series has as many nights as a step takes."""
        found = [sum(lv.nights for lv in one.course.levels) for one in self.series if one.current]
        return max(found, default=0) >= 2 * SHORTEST_LEVEL

    def news(self, verdict: Verdict) -> list[Event]:
        """Return the events first detected within the last `RECENT` nights that have this verdict;
        worse ones are a reason to fail."""
        return [one for one in self.events if one.verdict == verdict and one.recent]

    @property
    def _failing(self) -> list[Series]:
        """Series of cells that fail now: for each cell its first figure."""
        first: dict[object, Series] = {}
        for one in self.series:
            if one.failing:
                cell = [name for name in SERIES if name != "metric"]
                first.setdefault(one.last.measurement.key(cell), one)
        return list(first.values())

    @property
    def outliers(self) -> list[Series]:
        """Series whose last nights lie off their level, or failed, and are too few for a step."""
        off = [
            one for one in self.series if one.current and one.course.outliers and not one.failing
        ]
        return [one for one in self._failing if one.failing < SHORTEST_LEVEL] + off


def read(folder: Path) -> History:
    """Return the history of the stores in a folder, one per night.

    They are ordered by when their records began, whatever the folders are called. Raises
    `UsageError` where there is none.
    """
    found, unread = nights(folder)
    series, eras = series_of(found)
    return History(tuple(found), unread, tuple(series), tuple(eras))
