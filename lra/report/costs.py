"""One place of a cost table: replicates pooled, digits cut to the spread, ratio to exact."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import median

import msgspec

from lra.report.entries import Entry, Origin
from lra.report.rows import EXACT, NO_MIXING, RowKey
from lra.report.table import Cell
from lra.report.words import NO_VALUE, NOT_RUN, TIMES, figures, listing

LOOSE = 0.1
"""Quartiles further apart than this share of the median are marked with `~`."""


class Cost(msgspec.Struct, frozen=True):
    """A time or a size, or the word for why there is none."""

    value: float | None
    low: float = 0.0
    high: float = 0.0
    word: str = NOT_RUN
    disturbed: bool = False
    """Whether the machine was busy while it was taken."""

    @property
    def spread(self) -> float:
        """Distance of the quartiles, or the range over replicates."""
        return self.high - self.low

    @property
    def loose(self) -> bool:
        """Whether the spread is too wide to trust the second figure."""
        return self.value is not None and self.spread > LOOSE * self.value

    @property
    def marks(self) -> str:
        """What stands before the figure."""
        return ("!" if self.disturbed else "") + ("~" if self.loose else "")


class Costs(msgspec.Struct, frozen=True):
    """All places of one table."""

    by_place: dict[tuple[RowKey, int], Cost]
    mechanism: dict[RowKey, str]

    def at(self, key: RowKey, length: int) -> Cost:
        """Return what is known of a row at a length."""
        return self.by_place.get((key, length), Cost(None))

    def exact(self, origin: Origin, length: int) -> Cost:
        """Return the cost of exact attention in the same run."""
        keys = [k for k, name in sorted(self.mechanism.items()) if (k[0], name) == (origin, EXACT)]
        return self.at(keys[0], length) if keys else Cost(None)

    def known(self) -> list[float]:
        """Return all values, in no order that means anything."""
        return [cost.value for cost in self.by_place.values() if cost.value is not None]

    def fastest(self, length: int) -> RowKey | None:
        """Return the run's cheapest mechanism but the floor, if its quartiles lie apart."""
        main = "run" if any(origin == "run" for origin, _ in self.mechanism) else "reference"
        ranked = sorted(
            (cost.value, key, cost)
            for key, name in self.mechanism.items()
            if key[0] == main and name != NO_MIXING
            for cost in [self.at(key, length)]
            if cost.value is not None
        )
        if len(ranked) < 2 or ranked[0][2].high >= ranked[1][2].low:
            return None
        if any(cost.disturbed for _, _, cost in ranked):
            return None
        return ranked[0][1]

    def cell(self, key: RowKey, length: int, size: float, *, strong: bool) -> Cell:
        """Return a place as it is printed, in units of `size`, its ratio to exact attention below.

        Where exact attention has no figure the row stays and its ratio is `n/a`.
        """
        cost, exact = self.at(key, length), self.exact(key[0], length)
        if cost.value is None:
            return Cell(cost.word)
        text = cost.marks + figures(cost.value / size, cost.spread / size)
        if not exact.value or not cost.value:
            return Cell(text, NO_VALUE, cost.value, cost.spread, strong=strong)
        ratio = cost.value / exact.value
        spread = ratio * (cost.spread / cost.value + exact.spread / exact.value)
        busy = "!" if cost.disturbed or exact.disturbed else ""
        note = f"{busy}{figures(ratio, spread)} {TIMES}"
        return Cell(text, note, cost.value, cost.spread, ratio, strong)


def costs(entries: Iterable[Entry], busy: Collection[tuple[Origin, str]] = ()) -> Costs:
    """Return the costs of one metric and mode, replicates pooled; `busy` are disturbed records."""
    places: dict[tuple[RowKey, int], list[Entry]] = {}
    mechanism: dict[RowKey, str] = {}
    for entry in entries:
        key: RowKey = (entry.origin, entry.label)
        places.setdefault((key, entry.length), []).append(entry)
        mechanism[key] = entry.mechanism
    pooled = {
        place: msgspec.structs.replace(
            _pooled(found), disturbed=any((entry.origin, entry.record) in busy for entry in found)
        )
        for place, found in places.items()
    }
    return Costs(pooled, mechanism)


def _pooled(found: Sequence[Entry]) -> Cost:
    """The figure of one cell with its quartiles; of replicates, their median and range."""
    values = [entry.value for entry in found if entry.value is not None]
    if not values:
        words = sorted({entry.word for entry in found})
        return Cost(None, word=listing(words))
    if len(values) > 1:
        return Cost(median(values), min(values), max(values))
    one = next(entry for entry in found if entry.value is not None)
    low, high = (values[0] if bound is None else bound for bound in (one.q1, one.q3))
    return Cost(values[0], low, high)
