"""Fixed sines and cosines added to the input, interleaved.

N positions   D model width
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attention_impls.contract import Position
from lra.core.cards import PositionCard

BASE = 10_000.0


class Sinusoidal(Position):
    """PE(p, 2i) = sin(p / 10000^(2i / D)), PE(p, 2i + 1) the cosine of the same angle.

    Sines and cosines interleave, as in the paper and in the Long Range Arena's code (others put
    all sines first, which is another order of the same columns). An odd width ends on a sine. The
    formula holds for any position, so no length is refused.
    """

    card = PositionCard(
        title="Sinusoidal",
        paper="Vaswani et al., Attention Is All You Need, NeurIPS 2017, arXiv:1706.03762",
        year=2017,
        acts_on="input",
    )

    def embed(self, positions_N: Tensor) -> Tensor:
        """Return (N, D) float32, or (B, N, D)."""
        return sinusoid(positions_N, self.dims.width)


def sinusoid(positions_N: Tensor, width: int) -> Tensor:
    """Return the table's rows for these positions, (N, D) float32 on their device; (B, N, D) for
    those of each example.

    Float32 throughout: in bfloat16 neighbouring positions above 256 become one.
    """
    even_F = torch.arange(0, width, 2, device=positions_N.device, dtype=torch.float32)
    frequencies_F = torch.exp(even_F * (-math.log(BASE) / width))
    angles_NF = positions_N.to(torch.float32).unsqueeze(-1) * frequencies_F
    pairs_NF2 = torch.stack([angles_NF.sin(), angles_NF.cos()], dim=-1)
    return pairs_NF2.flatten(-2)[..., :width]
