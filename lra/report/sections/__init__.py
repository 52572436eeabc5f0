"""Sections of a report, one file for each topic: `analyse` gives values, `present` makes sections
of them.

Each file has `sections(analysis) -> list[Section]`; the page has them in this order.
"""

from __future__ import annotations

from collections.abc import Callable

from lra.report.analysis import Analysis
from lra.report.model import Section
from lra.report.sections import (
    accuracy,
    capabilities,
    decoding,
    decoding_by_use,
    endings,
    error,
    four_cells,
    gallery,
    learning,
    limit,
    peers,
    profile,
    protocol,
    provenance,
    published,
    repeatability,
    scaling,
    shortcuts,
    statistics,
    table2,
    tradeoff,
    trained_attention,
    written,
)

SECTIONS: tuple[Callable[[Analysis], list[Section]], ...] = (
    accuracy.sections,
    four_cells.sections,
    written.sections,
    tradeoff.sections,
    scaling.sections,
    decoding.sections,
    profile.sections,
    error.sections,
    capabilities.sections,
    gallery.sections,
    shortcuts.sections,
    learning.sections,
    statistics.sections,
    trained_attention.sections,
    decoding_by_use.sections,
    published.sections,
    peers.sections,
    table2.sections,
    limit.sections,
    repeatability.sections,
    protocol.sections,
    provenance.sections,
    endings.sections,
)
