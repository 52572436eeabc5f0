"""A cell to measure: small, and of no time."""

from __future__ import annotations

from typing import Any

from lra.core.cards import AttentionCard, Capabilities
from lra.core.cells import EfficiencyCell
from lra.core.protocol import Machine, Mechanism

TOY: dict[str, Any] = {
    "scale": "toy",
    "machine": Machine(processor="toy", cores=1),
    "torch": "0",
    "threads": 1,
    "versions": {},
    "mechanism": Mechanism(name="toy"),
    "length": 24,
    "heads": 2,
}
"""Fields of cells of every kind that measures calls."""


def toy_cell(**changes: Any) -> EfficiencyCell:
    return EfficiencyCell(**{**TOY, "mode": "forward", "head_width": 4, "seconds": 0.0, **changes})


def toy_card(**capabilities: Any) -> AttentionCard:
    return AttentionCard(
        title="toy",
        paper="none",
        year=2026,
        time="O(n)",
        memory="O(n)",
        capabilities=Capabilities(**capabilities),
    )
