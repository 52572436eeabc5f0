"""Crossover with exact attention: the length from which a mechanism costs less, cost by cost."""

from __future__ import annotations

import math
from statistics import median
from typing import Any, cast

import pandas as pd

from lra.core.catalogue import CONTROLS, EXACT
from lra.report.costs import Costs
from lra.report.model import Value
from lra.report.rows import missing
from lra.report.sweeps import Quantity, Sweep, quantities, sweeps
from lra.report.words import NO_VALUE
from lra.verdict.crossover import Costs as Sides
from lra.verdict.crossover import Crossover, Figure, crossover

COLUMNS = (
    "origin", "variant", "mechanism", "label", "kind", "mode", "found", "at", "low", "high",
    "interval", "lengths", "beaten", "hidden", "disturbed", "lost", "exact_lost",
)  # fmt: skip
_MOST = 7
"""Largest number of significant figures: lengths in whole positions."""


def crossovers(costs: Costs, setting: str) -> pd.DataFrame:
    """Return where each mechanism of a setting crosses exact attention of its own origin: one row
    for each origin, variant, kind (time, memory, state) and mode, for modes tried at three lengths
    or more.

    `at`, `low`, `high`: lengths, 0 where it costs less at every length compared and infinite where
    it does at none; NaN where there is no crossing to compute. `lengths`: the lengths compared;
    `beaten`: those among them at which exact attention had run out of memory. `hidden`: never in
    range, though its median lies below exact attention's at the longest length, since replicates
    cross one by one. `found` is the `Crossover`, None where no replicate has a length in common
    with exact attention; `lost` and `exact_lost` have the endings of both by length.
    """
    under = next(one for one in costs.settings if one.id == setting)
    figures = costs.figures[costs.figures["setting"] == setting]
    known = sweeps(figures, quantities(figures, under))
    anchors: dict[tuple[str, Quantity], Sweep] = {}
    for one in sorted(known, key=lambda sweep: sweep.label, reverse=True):
        if one.mechanism == EXACT:
            anchors[one.origin, one.quantity] = one
    rows = [
        [
            *(one.origin, one.variant, one.mechanism, one.label),
            *(one.quantity.kind, one.quantity.mode),
            *_compared(one, anchors.get((one.origin, one.quantity))),
        ]
        for one in known
        if one.mechanism not in (EXACT, *CONTROLS)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _compared(own: Sweep, exact: Sweep | None) -> list[Any]:
    found = crossover(_sides(own), _sides(exact), _out_of_memory(exact))
    bounds = (None, None, None) if found is None else (found.at, found.low, found.high)
    return [
        found,
        *(math.nan if bound is None else bound for bound in bounds),
        "" if found is None else found.interval,
        () if found is None else found.lengths,
        () if found is None else found.beaten,
        found is not None and exact is not None and _is_hidden(found, own, exact),
        own.disturbed or (exact is not None and exact.disturbed),
        own.lost,
        exact.lost if exact is not None else {},
    ]


def _sides(sweep: Sweep | None) -> Sides:
    if sweep is None:
        return {}
    return {
        number: {
            n: Figure(p.value, *(None if math.isnan(q) else q for q in (p.q1, p.q3)))
            for n, p in points.items()
        }
        for number, points in sweep.by_replicate.items()
    }


def _out_of_memory(exact: Sweep | None) -> set[int]:
    """Lengths at which exact attention ran out of memory, or was not tried after it had."""
    if exact is None:
        return set()
    known = {point.length for point in exact.points if point.known}
    out = {point.length for point in exact.points if point.status == "oom"} - known
    pruned = {point.length for point in exact.points if point.failure == "Pruned"} - known
    return out | {n for n in pruned if out and n > min(out)}


def _is_hidden(found: Crossover, own: Sweep, exact: Sweep) -> bool:
    if found.interval != "replicates" or found.at < math.inf:
        return False
    mine, theirs = (
        [p.value for p in side.points if p.known and p.length == found.lengths[-1]]
        for side in (own, exact)
    )
    return median(mine) < median(theirs)


def crossover_value(row: Any) -> Value:
    """Return the cell of a table for a row of `crossovers`: `1,900` above its interval; for costs
    below exact attention's at every length compared `≤256`, at none `>8,192`."""
    found = cast("Crossover | None", row.found)
    if found is None:
        own = [ending for endings in row.lost.values() for ending in endings]
        return missing(own) if own else Value(NO_VALUE, f"no {EXACT}")
    most = _figures(found)
    # Exact attention runs out of memory at a measured length.
    text = f"{found.at:,.0f}" if found.jumps else _length(found.at, found, most)
    bounds = [end for end in (found.low, found.high) if end is not None]
    ends = [_length(end, found, most) for end in bounds if {*bounds} != {found.at}]
    note = "\N{EN DASH}".join(ends) if len({*ends, text}) > 1 else ""
    if found.jumps:
        note = f"{EXACT} OOM" + (f"; {note}" if note else "")
    return Value(text, note, found.at, disturbed=bool(row.disturbed))


def _length(at: float, found: Crossover, most: int) -> str:
    if at == 0:
        return f"\N{LESS-THAN OR EQUAL TO}{found.lengths[0]:,}"
    if math.isinf(at):
        return f">{found.lengths[-1]:,}"
    return about(at, most)


def _figures(found: Crossover) -> int:
    """Number of significant figures of a crossing and its bounds: two, three where only they tell
    the bounds apart, and more where a rounded one would seem to lie beyond the lengths compared."""
    known = [n for n in (found.low, found.at, found.high) if n and math.isfinite(n)]
    if not known:
        return 2

    def ends(most: int) -> tuple[float, float]:
        rounded = [_rounded(n, most) for n in known]
        return min(rounded), max(rounded)

    shortest, longest = found.lengths[0], found.lengths[-1]
    least = 3 if ends(2)[0] == ends(2)[1] and ends(3)[0] != ends(3)[1] else 2
    inside = (n for n in range(least, _MOST) if shortest <= ends(n)[0] and ends(n)[1] <= longest)
    return next(inside, _MOST)


def _rounded(length: float, most: int) -> float:
    return round(length, most - 1 - math.floor(math.log10(length)))


def about(length: float, most: int = 2) -> str:
    """Return a length in `most` significant figures."""
    return f"{_rounded(length, most):,.0f}"
