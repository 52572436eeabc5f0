"""A table of one cost: by length with its multiple of exact attention, its growth and crossover."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lra.core.catalogue import EXACT
from lra.report.cost_grid import Grid, Place
from lra.report.costs import LOOSE
from lra.report.crossover import crossover_value
from lra.report.growth import declared_value, growth_value
from lra.report.model import Table, Value
from lra.report.rows import Key, missing, reference_notes
from lra.report.words import NO_VALUE, TIMES, Unit, figures, listing, scale_of

CALLS = {"forward": "forward pass", "train": "training step", "decode": "decoding step"}
UNITS: dict[str, Unit] = {
    "latency": "s",
    "prefill": "s",
    "energy": "J",
}
"""Units of metrics; bytes for all others."""
_MOST_NOTES = 3
_SMALL = 1e-3
"""Multiples below this are shown as less than it."""
Derived = Mapping[tuple[str, str], Any]
"""Rows of growth or crossover of one kind and mode, by origin and variant."""


def cost_table(
    grid: Grid,
    *,
    id: str,
    title: str,
    caption: str = "",
    legend: tuple[str, ...] = (),
    growth: Derived | None = None,
    crossing: Derived | None = None,
    notes: Iterable[str] = (),
) -> Table:
    """Return a table with a row for each mechanism and a column for each length, then growth and
    crossover."""
    size, symbol = scale_of(grid.values, UNITS.get(grid.metric, "B"))
    columns = [str(length) for length in grid.lengths]
    columns += ["growth", "declared"] if growth else []
    columns += ["pays from"] if crossing else []
    rows = []
    empty = _without_figure(grid)
    for key in grid.keys:
        if key in empty:
            continue
        values = [
            place_value(key, grid.places.get((key, n)), size, best=grid.best.get(n) == key)
            for n in grid.lengths
        ]
        id_of_row = (key.origin, key.variant)
        if growth:
            row = growth.get(id_of_row)
            values += [growth_value(row), declared_value(row)] if row else [_NONE] * 2
        if crossing:
            values.append(crossover_value(crossing[id_of_row]) if id_of_row in crossing else _NONE)
        rows.append(key.row(values))
    found = [
        *notes,
        *_empty_rows(empty),
        *_gaps(grid),
        *_no_ratio(grid),
        *reference_notes(grid.figures, grid.keys),
    ]
    return Table(
        id=id,
        title=f"{title}, in {symbol}",
        caption=caption,
        corner="mechanism",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=tuple(found[:_MOST_NOTES]),
        legend=legend,
    )


_NONE = Value("")


def place_value(key: Key, place: Place | None, size: float, *, best: bool) -> Value:
    """Return the cell of a table for a place in units of `size`, above its multiple of exact
    attention."""
    if place is None or not place.known:
        # Reasons are given once, below the table.
        return Value(missing(place.endings if place else (), asked=place is not None).text)
    notes = [_ratio(place)] if place.ratio > 0 and key.mechanism != EXACT else []
    if place.endings:
        notes.append(f"{place.processes} of {place.asked}: {missing(place.endings).text}")
    text = figures(place.value / size, (place.high - place.low) / size)
    return Value(
        f"~{text}" if is_loose(place) else text,
        "; ".join(notes),
        place.value,
        best,
        place.disturbed,
    )


def _ratio(place: Place) -> str:
    mark = "!" if place.ratio_disturbed and not place.disturbed else ""
    if place.ratio < _SMALL:
        return f"{mark}<{_SMALL:g}{TIMES}"
    return f"{mark}{figures(place.ratio, place.ratio_spread, most=2)}{TIMES}"


def is_loose(place: Place) -> bool:
    """Return whether the quartiles of one process are too wide to trust its second digit."""
    return place.processes == 1 and place.high - place.low > LOOSE * place.value


def _without_figure(grid: Grid) -> dict[Key, str]:
    """Notes on rows with the same ending at every length; none where no row has a figure."""
    if not grid.values:
        return {}
    words: dict[Key, set[str]] = {}
    for (key, _), place in grid.places.items():
        word = "" if place.known else missing(place.endings).text
        words.setdefault(key, set()).add(word)
    return {key: own.pop() for key, own in words.items() if len(own) == 1 and "" not in own}


def _empty_rows(empty: Mapping[Key, str]) -> list[str]:
    by_word: dict[str, list[str]] = {}
    for key, word in empty.items():
        by_word.setdefault(word, []).append(key.label)
    parts = [f"{listing(sorted(set(own)))} ({word})" for word, own in sorted(by_word.items())]
    return [f"Without a figure: {'; '.join(parts)}."] if parts else []


def _gaps(grid: Grid) -> list[str]:
    """Notes on why calls that ended well have no figure."""
    found = {
        reason
        for place in grid.places.values()
        for status, _, reason in place.endings
        if status == "ok" and reason
    }
    return [f"Not measured: {'; '.join(sorted(found))}."] if found else []


def _no_ratio(grid: Grid) -> list[str]:
    gone = grid.without_exact()
    if not gone or not any(key.origin == "run" for key in grid.keys):
        return []
    words = [f"{n} ({missing(own, asked=bool(own)).text or NO_VALUE})" for n, own in gone.items()]
    return [f"No multiple at {listing(words)}, where {EXACT} has no figure."]
