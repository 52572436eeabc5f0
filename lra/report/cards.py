"""The card of a mechanism: its own page, of all that the records say of it."""

from __future__ import annotations

import msgspec

from lra.report.analysis import Analysis


class Card(msgspec.Struct, frozen=True):
    """One mechanism's page."""

    mechanism: str


def cards(analysis: Analysis) -> list[Card]:
    """Return a card for each mechanism of ours in a report."""
    return []
