"""No positions: what attends sees a set, unless its own pattern tells places apart."""

from __future__ import annotations

from attention_impls.contract import Position
from lra.core.cards import PositionCard


class NoPosition(Position):
    """Adds, turns and shifts nothing."""

    card = PositionCard(
        title="No positions",
        paper="Haviv et al., Transformer Language Models without Positional Encodings Still Learn "
        "Positional Information, Findings of EMNLP 2022, arXiv:2203.16634",
        year=2022,
        acts_on="nothing",
    )
