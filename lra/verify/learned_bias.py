"""A position scheme for laws: a bias of logits that is trained.

H heads   N queries   M keys
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attention_impls.contract import Dims, Position
from lra.core.cards import PositionCard


class LearnedBias(Position):
    """A trained bias per head and distance, large enough to matter."""

    card = PositionCard(title="", paper="", year=2026, acts_on="logits")

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.table = nn.Parameter(torch.randn(dims.heads, 2 * dims.max_length))

    def logits(self, rows_N: Tensor, columns_M: Tensor) -> Tensor:
        """Return the bias of each pair, (H, N, M); (B, H, N, M) for places of each example."""
        apart_NM = rows_N.unsqueeze(-1) - columns_M.unsqueeze(-2)
        return self.table[:, self.dims.max_length + apart_NM].movedim(0, -3)
