"""Growth with length: the fitted exponent of a cost, and the one that a mechanism declares."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import pandas as pd

from lra.report.costs import Costs
from lra.report.load.settings import CostSetting
from lra.report.model import Value
from lra.report.rows import missing
from lra.report.sweeps import Quantity, Sweep, quantities, sweeps
from lra.report.words import NO_VALUE, listing
from lra.verdict.declared_cost import DeclaredCost, parse_cost, parse_greatest_cost
from lra.verdict.growth import LEAST, Growth, growth

_NOTHING = "nothing"
"""Declared cost in a peer's card: an adapter does not know its package's."""
_WIDE = 0.2
"""Width of an interval from which on exponents have one decimal."""


class GrowthRow(NamedTuple):
    """Growth of one cost of one mechanism."""

    origin: str
    variant: str
    mechanism: str
    label: str
    kind: str
    mode: str
    found: Growth | None
    """Fitted growth; None below three lengths."""
    lengths: tuple[int, ...]
    """Lengths that every replicate has."""
    declared: DeclaredCost | None
    """Declared growth; None where nothing is declared, or records of one row declare different
    growths."""
    said: tuple[str, ...]
    """Declared formulas as in the records."""
    faster: bool
    """Whether it grows faster than declared. A declaration counts as linear at least, since inputs
    and outputs are."""
    disturbed: bool
    lost: dict[int, tuple[tuple[str, str, str], ...]]


def growths(costs: Costs, setting: str) -> pd.DataFrame:
    """Return a `GrowthRow` for each origin, variant, kind and mode of a setting, for modes tried at
    three lengths or more; without decoding, since a card declares the cost of a whole call."""
    under = next(one for one in costs.settings if one.id == setting)
    figures = costs.figures[costs.figures["setting"] == setting]
    wanted = [one for one in quantities(figures, under) if one.mode != "decode"]
    rows = [_row(one, under) for one in sweeps(figures, wanted)]
    return pd.DataFrame(rows, columns=list(GrowthRow._fields))


def is_unfused(setting: CostSetting, mode: str) -> bool:
    """Return whether torch has no fused kernel for exact attention in a call: in training on a CPU
    with dropout on the weights."""
    dropout = setting.model is not None and setting.model.attention_dropout > 0
    return setting.device == "cpu" and mode == "train" and dropout


def _row(sweep: Sweep, setting: CostSetting) -> GrowthRow:
    replicates = sweep.by_replicate.values()
    found = growth([{n: p.value for n, p in one.items()} for one in replicates])
    said = sorted({point.declared for point in sweep.points if point.declared})
    claim = _claim(said[0], setting, sweep.quantity) if len(said) == 1 else None
    shared = set[int].intersection(*map(set, replicates)) if replicates else set[int]()
    judged = found is not None and claim is not None and not sweep.disturbed
    return GrowthRow(
        *(sweep.origin, sweep.variant, sweep.mechanism, sweep.label),
        *(sweep.quantity.kind, sweep.quantity.mode),
        found=found,
        lengths=tuple(sorted(shared)),
        declared=claim,
        said=tuple(said),
        faster=bool(judged and found and claim and found.exceeds(max(claim.exponent, 1.0))),
        disturbed=sweep.disturbed,
        lost=sweep.lost,
    )


def _claim(said: str, setting: CostSetting, quantity: Quantity) -> DeclaredCost | None:
    """Declared cost of calls of a setting: of plain inputs, and of dropout where a CPU has it."""
    if is_unfused(setting, quantity.mode):
        first, *others = said.split(";")
        on_cpu = [one for one in others if "on a CPU" in one and "dropout" in one]
        return parse_greatest_cost(";".join([first, *on_cpu]))
    return parse_cost(said, gpu=setting.device == "cuda")


def growth_value(row: Any) -> Value:
    """Return the cell of a table for the exponent: `1.02`, above that of the last two doublings."""
    found = cast("Growth | None", row.found)
    if found is None:
        if not row.lengths and row.lost:
            return Value(missing([end for ends in row.lost.values() for end in ends]).text)
        return Value(NO_VALUE, f"{len(row.lengths)} of {LEAST} lengths")
    places = 1 if found.high - found.low > _WIDE else 2
    note = _exponent(found.end, places) if found.end is not None else ""
    text = _exponent(found.exponent, places)
    return Value(text, note, found.exponent, disturbed=bool(row.disturbed))


def declared_value(row: Any) -> Value:
    """Return the declared exponent, and whether the cost grows faster."""
    if row.declared is None:
        words = [text for text in row.said if text != _NOTHING]
        return Value(listing(words) or ("not declared" if row.said else NO_VALUE))
    note = "grows faster" if row.faster else ""
    return Value(f"{row.declared.exponent:.3g}", note, row.declared.exponent)


def _exponent(value: float, places: int) -> str:
    """Text of an exponent, without a sign before zero."""
    return f"{round(value, places) + 0.0:.{places}f}"
