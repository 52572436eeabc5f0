"""Claims of the patterns in which positions alone say who reads whom."""

from __future__ import annotations

from lra.core.cards import Capabilities

BY_POSITION = Capabilities(
    bidirectional=True,
    causal="strict",
    padding="content",
    decode="exact",
    bias=True,
    rotary=True,
)
