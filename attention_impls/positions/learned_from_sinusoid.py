"""Learned positions that start as the sinusoid: small models find order in far fewer steps.

N positions   D model width
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attention_impls.contract import Dims, Position
from attention_impls.positions.learned import look_up
from attention_impls.positions.sinusoidal import sinusoid
from lra.core.cards import PositionCard


class LearnedFromSinusoid(Position):
    """A trained table of `max_length` rows that starts as `sinusoidal`'s.

    The start is ours, for protocols of few steps: from N(0, 0.02), rows of neighbours are
    unrelated and short training does not repair it. Refuses longer inputs, as `learned` does.
    """

    card = PositionCard(
        title="Learned, started at the sinusoid",
        paper="Gehring et al., Convolutional Sequence to Sequence Learning, ICML 2017, "
        "arXiv:1705.03122, started at the table of Vaswani et al., NeurIPS 2017, arXiv:1706.03762",
        year=2017,
        acts_on="input",
        fixed_length=True,
    )

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.table = nn.Parameter(sinusoid(torch.arange(dims.max_length), dims.width))

    def embed(self, positions_N: Tensor) -> Tensor:
        """Return (N, D), or (B, N, D). Raises `UnsupportedError` beyond the table."""
        return look_up(self.table, positions_N)
