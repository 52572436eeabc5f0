"""A cost by mechanism and length: pooled figures for a table and a plot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from lra.core.catalogue import EXACT
from lra.report.costs import Costs, fastest
from lra.report.rows import Key, read_against, row_keys


class Place(NamedTuple):
    """Cost of one mechanism at one length, pooled over processes; NaN where there is none."""

    value: float
    low: float
    high: float
    ratio: float
    ratio_spread: float
    ratio_disturbed: bool
    disturbed: bool
    processes: int
    asked: int
    endings: tuple[tuple[str, str, str], ...]

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.value == self.value


class Grid(msgspec.Struct, frozen=True):
    """One metric of one mode and setting."""

    metric: str
    mode: str
    keys: tuple[Key, ...]
    lengths: tuple[int, ...]
    places: dict[tuple[Key, int], Place]
    best: dict[int, Key]
    """Row that is surely the fastest, by length; for times alone."""
    figures: pd.DataFrame
    """One row for each process."""

    @property
    def values(self) -> list[float]:
        """All values that are known."""
        return [place.value for place in self.places.values() if place.known]

    def points(self, key: Key) -> dict[int, float]:
        """Return the positive values of a row by length."""
        found = {n: self.places.get((key, n)) for n in self.lengths}
        return {n: place.value for n, place in found.items() if place and place.value > 0}

    def ratios(self, key: Key) -> dict[int, float]:
        """Return a row's multiples of exact attention, by length."""
        found = {n: self.places.get((key, n)) for n in self.lengths}
        return {n: place.ratio for n, place in found.items() if place and place.ratio > 0}

    def without_exact(self) -> dict[int, tuple[tuple[str, str, str], ...]]:
        """Return the lengths without a figure of the run's exact attention, with its endings."""
        key = next((k for k in self.keys if k.mechanism == EXACT and k.origin == "run"), None)
        found = {n: self.places.get((key, n)) if key else None for n in self.lengths}
        return {
            n: place.endings if place else ()
            for n, place in found.items()
            if place is None or not place.known
        }

    def split(self) -> tuple[Grid, Grid | None]:
        """Return a grid of the rows tried at half as many lengths as any, or more, at the lengths
        of half of them, or more; and a grid of all other rows and lengths."""
        tried = Counter(key for key, _ in self.places)
        whole = [key for key in self.keys if 2 * tried[key] >= max(tried.values())]
        rows = Counter(n for key, n in self.places if key in whole)
        common = [n for n in self.lengths if 2 * rows[n] >= max(rows.values())]
        left = {(key, n) for key, n in self.places if key not in whole or n not in common}
        if not left:
            return self, None
        few = {n for _, n in left}
        return self._part(whole, common), self._part({key for key, _ in left}, few)

    def of_the_run(self) -> Grid:
        """Return a grid of the run's mechanisms, exact attention, the controls and the fastest row
        of each length; all rows where the run has none."""
        own = {key.mechanism for key in self.keys if key.origin == "run"}
        if not own:
            return self
        asked, best = read_against(own), {*self.best.values()}
        kept = {key for key in self.keys if key.mechanism in asked or key in best}
        return self._part(kept, self.lengths)

    def without(self, variants: Collection[str]) -> Grid:
        """Return a grid of all rows but those of some variants."""
        return self._part({k for k in self.keys if k.variant not in variants}, self.lengths)

    def _part(self, keys: Collection[Key], lengths: Collection[int]) -> Grid:
        return msgspec.structs.replace(
            self,
            keys=tuple(key for key in self.keys if key in keys),
            lengths=tuple(n for n in self.lengths if n in lengths),
            places={
                (key, n): place
                for (key, n), place in self.places.items()
                if key in keys and n in lengths
            },
        )


def grid(costs: Costs, setting: str, mode: str, metric: str) -> Grid | None:
    """Return the grid of a setting's metric; None where nothing of it was asked."""

    def chosen(table: pd.DataFrame) -> pd.DataFrame:
        wanted = (table["mode"] == mode) & (table["metric"] == metric)
        return table[wanted & (table["setting"] == setting)]

    return grid_of(chosen(costs.pooled), chosen(costs.figures), timed=metric in _TIMES)


_TIMES = ("latency", "prefill")


def grid_of(pooled: pd.DataFrame, figures: pd.DataFrame, *, timed: bool) -> Grid | None:
    """Return the grid of one metric and mode, from pooled figures and those of each process."""
    if pooled.empty:
        return None
    keys = row_keys(figures)
    by_id: dict[tuple[str, str], Key] = {(key.origin, key.variant): key for key in keys}
    places: dict[tuple[Key, int], Place] = {}
    names = ["origin", "variant", "length"]
    rows = zip(
        pooled[names].itertuples(index=False, name=None),
        pooled[list(Place._fields)].itertuples(index=False, name=None),
        strict=True,
    )
    for (origin, variant, length), place in rows:
        if (origin, variant) in by_id:
            places[by_id[origin, variant], int(length)] = _place(place, timed=timed)
    lengths = sorted({length for _, length in places})
    best = {n: _fastest(pooled[pooled["length"] == n], by_id) for n in lengths if timed}
    return Grid(
        metric=str(pooled["metric"].iat[0]),
        mode=str(pooled["mode"].iat[0]),
        keys=tuple(keys),
        lengths=tuple(lengths),
        places=places,
        best={n: key for n, key in best.items() if key},
        figures=figures,
    )


def _fastest(own: pd.DataFrame, by_id: Mapping[tuple[str, str], Key]) -> Key | None:
    variant = fastest(own)
    main = "run" if (own["origin"] == "run").any() else "reference"
    return None if variant is None else by_id.get((main, variant))


def _place(fields: tuple[Any, ...], *, timed: bool) -> Place:
    place = Place(*fields)
    # A busy machine slows a call down; it makes none larger.
    return place if timed else place._replace(disturbed=False, ratio_disturbed=False)
