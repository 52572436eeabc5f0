"""ALiBi: a penalty on each logit that grows with the distance, steeper in some heads.

H heads   N rows (queries)   M columns (keys)
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls.contract import Dims, Position
from lra.core.cards import PositionCard


class Alibi(Position):
    """Adds -slope_h * |i - j| to the logits of head h.

    Symmetric in both directions, as the authors propose for encoders; on the causal side it is
    the paper's. The penalty is computed from distances, not by the shortcut +slope * j, which
    holds only under a causal mask.
    """

    card = PositionCard(
        title="ALiBi",
        paper="Press, Smith, Lewis, Train Short, Test Long: Attention with Linear Biases Enables "
        "Input Length Extrapolation, ICLR 2022, arXiv:2108.12409",
        year=2022,
        acts_on="logits",
    )

    slopes_H: Tensor

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.register_buffer("slopes_H", torch.tensor(_slopes(dims.heads)), persistent=False)

    def logits(self, rows_N: Tensor, columns_M: Tensor) -> Tensor:
        """Return (H, N, M) float32; (B, H, N, M) for places of each example."""
        distance_NM = (rows_N.unsqueeze(-1) - columns_M.unsqueeze(-2)).abs().to(torch.float32)
        return -self.slopes_H.float()[:, None, None] * distance_NM.unsqueeze(-3)


def _slopes(heads: int) -> list[float]:
    """Return one slope per head: 2^(-8 h / H) for h = 1 ... H when H is a power of two.

    Otherwise, as in the authors' code: the slopes of the next lower power of two, then every
    other slope of its double.
    """
    lower = 1 << (heads.bit_length() - 1)
    own = [2.0 ** (-8.0 * h / lower) for h in range(1, lower + 1)]
    between = [2.0 ** (-4.0 * h / lower) for h in range(1, 2 * lower + 1, 2)]
    return own + between[: heads - lower]
