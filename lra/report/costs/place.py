"""One place of a cost table: replicates pooled, digits cut to the spread, ratio to exact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from statistics import median

import msgspec

from lra.report.entries import Busy, Entry, Origin
from lra.report.rows import EXACT, NO_MIXING, RowKey
from lra.report.table import Cell
from lra.report.words import NO_VALUE, NOT_RUN, TIMES, figures, listing

LOOSE, _LOOSELY = 0.1, "~"
"""Quartiles of one process further apart than this share of the median are marked so."""
CLOSE = 0.1
"""Within this share of the least a figure is not told apart from it where either is of one process:
its quartiles say nothing of the next."""


class Cost(msgspec.Struct, frozen=True):
    """A time or a size, or the word for why there is none."""

    value: float | None
    low: float = 0.0
    high: float = 0.0
    word: str = NOT_RUN
    disturbed: bool = False
    """Whether the machine was busy while it was taken."""
    processes: int = 1
    """How many replicates have a figure."""
    asked: int = 1
    """How many were tried."""
    others: str = ""
    """How those without a figure ended; empty where there are none, or no figure at all."""

    @property
    def spread(self) -> float:
        """Distance of the quartiles, or the range over replicates."""
        return self.high - self.low

    @property
    def loose(self) -> bool:
        """Whether the quartiles are too wide to trust the second figure; a range over replicates
        says itself, in its digits, what it is worth."""
        one = self.value is not None and self.processes == 1
        return one and self.spread > LOOSE * (self.value or 0.0)

    @property
    def partly(self) -> str:
        """Of how many replicates it is, and how the others ended: `1 of 3; timeout`."""
        return f"{self.processes} of {self.asked}; {self.others}" if self.others else ""

    @property
    def flawed(self) -> bool:
        """Whether it may not be called the least by itself."""
        return self.disturbed or bool(self.others)

    def below(self, other: Cost) -> bool:
        """Whether it is less than another by more than the spread of processes."""
        mine, its = self.value or 0.0, other.value or 0.0
        if 1 in (self.processes, other.processes) and (1 + CLOSE) * mine >= its:
            return False
        high = self.high if self.processes > 1 else mine
        return high < (other.low if other.processes > 1 else its)


class Costs(msgspec.Struct, frozen=True, dict=True):
    """All places of one table."""

    by_place: dict[tuple[RowKey, int], Cost]
    mechanism: dict[RowKey, str]

    def at(self, key: RowKey, length: int) -> Cost:
        """Return what is known of a row at a length."""
        return self.by_place.get((key, length), Cost(None))

    def exact(self, origin: Origin, length: int) -> Cost:
        """Return the cost of exact attention in the same run."""
        key = self._anchors.get(origin)
        return self.at(key, length) if key else Cost(None)

    @cached_property
    def _anchors(self) -> dict[Origin, RowKey]:
        """The rows of exact attention: of several in one run the first by label."""
        keys = sorted(key for key, name in self.mechanism.items() if name == EXACT)
        return {key[0]: key for key in reversed(keys)}

    def known(self) -> list[float]:
        """Return all values, in no order that means anything."""
        return [cost.value for cost in self.by_place.values() if cost.value is not None]

    def partly_notes(self) -> list[str]:
        """Return the sentence that explains figures of some replicates only, if there are any."""
        found = [cost for cost in self.by_place.values() if cost.partly]
        return [
            f"{one.processes} of {one.asked}: so many of the processes have a figure; then how the "
            "others ended."
            for one in found[:1]
        ]

    def ranked(self, keys: Iterable[RowKey], length: int) -> list[tuple[RowKey, Cost]]:
        """Return those of the rows that have a figure at a length, the least first."""
        found = [(key, self.at(key, length)) for key in keys]
        known = [(cost.value, key, cost) for key, cost in found if cost.value is not None]
        return [(key, cost) for _, key, cost in sorted(known, key=lambda one: one[:2])]

    def least(self, keys: Iterable[RowKey], length: int) -> list[RowKey]:
        """Return the row that costs least and those not told apart from it, the least first.

        What was disturbed, or is of some replicates only, never stands alone.
        """
        ranked = self.ranked(keys, length)
        if not ranked:
            return []
        (first, cost), *rest = ranked
        close = [key for key, other in rest if not cost.below(other)]
        if cost.flawed and not close:
            close = [key for key, _ in rest[:1]]
        return [first, *close]

    def fastest(self, length: int) -> RowKey | None:
        """Return the run's cheapest mechanism but the floor, where replicates tell it apart."""
        main = "run" if any(origin == "run" for origin, _ in self.mechanism) else "reference"
        keys = [k for k, name in self.mechanism.items() if k[0] == main and name != NO_MIXING]
        found = [cost for _, cost in self.ranked(keys, length)]
        if len(found) < 2 or any(cost.disturbed or cost.processes < 2 for cost in found):
            return None
        least = self.least(keys, length)
        return least[0] if len(least) == 1 else None

    def disturbed(self, key: RowKey, length: int) -> bool:
        """Return whether the machine was busy during a figure, or during exact attention's, which
        its ratio is to."""
        return self.at(key, length).disturbed or self.exact(key[0], length).disturbed

    def ratio(self, key: RowKey, length: int) -> str:
        """Return the ratio to exact attention as it is printed; empty where there is none."""
        cost, exact = self.at(key, length), self.exact(key[0], length)
        if not cost.value or not exact.value:
            return ""
        ratio = cost.value / exact.value
        spread = ratio * (cost.spread / cost.value + exact.spread / exact.value)
        mark = _LOOSELY if cost.loose or exact.loose else ""
        return f"{mark}{figures(ratio, spread)} {TIMES}"

    def cell(self, key: RowKey, length: int, size: float, *, strong: bool) -> Cell:
        """Return a place as it is printed, in units of `size`, its ratio to exact attention below.

        Where exact attention has no figure the row stays and its ratio is `n/a`.
        """
        cost, exact = self.at(key, length), self.exact(key[0], length)
        if cost.value is None:
            return Cell(cost.word)
        told = self.ratio(key, length)
        disturbed = bool(told) and self.disturbed(key, length)
        beside = ("!" if disturbed else "") + (told or NO_VALUE)
        return Cell(
            (_LOOSELY if cost.loose else "") + figures(cost.value / size, cost.spread / size),
            "; ".join(part for part in (beside, cost.partly) if part),
            cost.value,
            cost.spread,
            cost.value / exact.value if told and exact.value else None,
            strong,
            cost.disturbed,
            disturbed,
        )


def costs(entries: Iterable[Entry], busy: Busy = ()) -> Costs:
    """Return the costs of one metric and mode, replicates pooled; `busy` are disturbed records."""
    places: dict[tuple[RowKey, int], list[Entry]] = {}
    mechanism: dict[RowKey, str] = {}
    for entry in entries:
        key: RowKey = (entry.origin, entry.label)
        places.setdefault((key, entry.length), []).append(entry)
        mechanism[key] = entry.mechanism
    return Costs({place: _pooled(found, busy) for place, found in places.items()}, mechanism)


def _pooled(found: Sequence[Entry], busy: Busy) -> Cost:
    """The figure of one cell with its quartiles; of replicates, their median and range."""
    known = [entry for entry in found if entry.value is not None]
    values = [entry.value for entry in known if entry.value is not None]
    words = listing(sorted({entry.word for entry in found if entry.value is None}))
    if not values:
        return Cost(None, word=words)
    low, high = min(values), max(values)
    if len(values) == 1:
        low, high = (values[0] if bound is None else bound for bound in (known[0].q1, known[0].q3))
    return Cost(
        median(values),
        low,
        high,
        disturbed=any((entry.origin, entry.record) in busy for entry in known),
        processes=len(known),
        asked=len(found),
        others=words,
    )
