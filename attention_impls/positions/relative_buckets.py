"""A learned bias of logits for each head and bucket of distances: exact near, logarithmic far.

H heads   N rows (queries)   M columns (keys)
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from attention_impls.contract import Dims, Position
from lra.core.cards import PositionCard

BUCKETS = 32
FARTHEST = 128
"""Distance from which on all share the last bucket."""


class RelativeBuckets(Position):
    """Adds table[h, bucket(j - i)] to the logits of head h; one table serves all layers.

    Half of the 32 buckets are for earlier keys, half for later ones. The nearer half of each side
    are single distances; the others are as wide as the logarithm makes them, up to 128.
    """

    card = PositionCard(
        title="Relative buckets",
        paper="Raffel et al., Exploring the Limits of Transfer Learning with a Unified "
        "Text-to-Text Transformer, JMLR 2020, arXiv:1910.10683",
        year=2020,
        acts_on="logits",
    )
    sides: ClassVar[int] = 2
    """Directions that buckets tell apart."""

    buckets_F: Tensor

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.table = nn.Parameter(torch.empty(BUCKETS, dims.heads))
        nn.init.normal_(self.table, std=dims.width**-0.5)
        found = torch.tensor(distance_buckets(BUCKETS // self.sides))
        self.register_buffer("buckets_F", found, persistent=False)

    def logits(self, rows_N: Tensor, columns_M: Tensor) -> Tensor:
        """Return (H, N, M) float32; (B, H, N, M) for places of each example."""
        later_NM = columns_M.unsqueeze(-2) - rows_N.unsqueeze(-1)
        bucket_NM = self.buckets_F[later_NM.abs().clamp(max=FARTHEST)]
        bucket_NM = bucket_NM + (BUCKETS // 2) * (later_NM > 0)
        return self.table[bucket_NM].movedim(-1, -3).float()


def distance_buckets(buckets: int) -> list[int]:
    """Return the bucket of each distance from 0 to `FARTHEST`, of so many in one direction.

    Beyond the exact half e, bucket e + k begins at e * (FARTHEST / e)^(k / e); compared in whole
    numbers, so that no border depends on rounding.
    """
    exact = buckets // 2
    steps = buckets - exact
    found = []
    for distance in range(FARTHEST + 1):
        reached = [
            k for k in range(steps) if distance**steps * exact**k >= exact**steps * FARTHEST**k
        ]
        found.append(distance if distance < exact else exact + reached[-1])
    return found
