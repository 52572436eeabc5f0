"""Estimates of CO2e and cost from measured energy: never among what was measured.

They rest on what the reader states of their own electricity; nothing here is looked up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from lra.core.errors import UsageError
from lra.report.costs.tables import call_words
from lra.report.entries import Entry
from lra.report.table import Cell, Table
from lra.report.words import figures

CALLS = 1e6
"""An estimate is of so many calls: one costs too little to read."""
JOULES = 3.6e6
"""Of a kWh."""
MOST_GRAMS = 2000.0
"""Of CO2e per kWh: old lignite plants are near 1200. More is another unit, or a slip."""


class Assumptions(msgspec.Struct, frozen=True):
    """What the reader states of their electricity; raises `UsageError` for what makes no sense."""

    grams: float | None = None
    """Of CO2e per kWh."""
    price: float | None = None
    """Of a kWh, in any currency."""

    def __post_init__(self) -> None:
        if self.grams is not None and not 0.0 < self.grams <= MOST_GRAMS:
            raise UsageError(
                f"--grid-intensity {self.grams:g} makes no sense; give grams of CO2e per kWh, "
                f"above 0 and up to {MOST_GRAMS:g}"
            )
        if self.price is not None and not (self.price > 0.0 and math.isfinite(self.price)):
            raise UsageError(
                f"--price {self.price:g} makes no sense; give the price of a kWh, above 0"
            )

    @property
    def stated(self) -> list[str]:
        """What is assumed, in words."""
        grams = [] if self.grams is None else [f"{self.grams:g} g of CO2e per kWh"]
        price = [] if self.price is None else [f"a price of {self.price:g} per kWh"]
        return grams + price


def estimate_tables(energy: Mapping[str, Table], stated: Assumptions) -> list[Table]:
    """Return a table for each mode of measured energy; none where nothing is assumed."""
    if not stated.stated:
        return []
    return [_table(call_words(mode), table, stated) for mode, table in energy.items()]


def _table(call: str, energy: Table, stated: Assumptions) -> Table:
    calls = f"a million {call}{'es' if call.endswith('s') else 's'}"
    both = stated.grams is not None and stated.price is not None
    return Table(
        id=f"estimate-{energy.id}",
        title=f"Estimate: cost of {calls}"
        if stated.grams is None
        else f"Estimate: CO2e of {calls}, in g",
        caption="Estimated, not measured: the board's whole energy of the call, as above, times "
        f"{' and '.join(stated.stated)}, as stated when this report was made."
        + (" The second figure is the cost." if both else ""),
        corner=energy.corner,
        columns=energy.columns,
        rows=tuple(
            replace(row, cells=tuple(_cell(cell, stated) for cell in row.cells))
            for row in energy.rows
        ),
        notes=(
            "Too low by what the board's counter does not see: processor, main memory, cooling, "
            "power supply; and making the machine.",
        ),
    )


def _cell(energy: Cell, stated: Assumptions) -> Cell:
    if energy.value is None:
        return Cell(energy.text)
    rates = [rate for rate in (stated.grams, stated.price) if rate is not None]
    values = [CALLS * energy.value / JOULES * rate for rate in rates]
    first, *below = [figures(value, most=2) for value in values]
    return Cell(first, "".join(below), values[0])


def no_estimate(entries: Sequence[Entry], stated: Assumptions) -> list[str]:
    """Return for each machine of the run without measured energy that it has no estimate."""
    if not stated.stated:
        return []
    own = [e for e in entries if e.origin == "run" and e.kind == "efficiency"]
    places = {(e.machine, e.device) for e in own}
    places -= {(e.machine, e.device) for e in own if e.metric == "energy" and e.value is not None}
    why = {"cpu": "the energy of a CPU is not measured"}
    return [
        f"No estimate of CO2e or cost on {machine} ({device}): "
        f"{why.get(device, 'no energy was measured there')}."
        for machine, device in sorted(places)
    ]
