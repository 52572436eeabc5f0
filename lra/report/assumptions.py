"""Electricity of a reader, for estimates of CO2e and cost; nothing is looked up."""

from __future__ import annotations

import math

import msgspec

from lra.core.errors import UsageError

MOST_GRAMS = 2000.0
"""Largest plausible grams of CO2e per kWh: old lignite plants are near 1200. More is another unit,
or a slip."""


class Assumptions(msgspec.Struct, frozen=True):
    """A reader's own electricity, for estimates from measured energy.

    Raises `UsageError` for an impossible value.
    """

    grams: float | None = None
    """CO2e per kWh, in grams."""
    price: float | None = None
    """Price of a kWh, in any currency."""

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
