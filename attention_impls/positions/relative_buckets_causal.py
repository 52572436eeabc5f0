"""Buckets of distances for queries that see no later key: all of them are for earlier ones.

H heads   N rows (queries)   M columns (keys)
"""

from __future__ import annotations

from torch import Tensor

from attention_impls.positions.relative_buckets import FARTHEST, RelativeBuckets


class RelativeBucketsCausal(RelativeBuckets):
    """Adds table[h, bucket(i - j)] to the logits of head h; later keys have the bucket of the
    query's own place.

    The first 16 of 32 buckets are single distances, the others logarithmic up to 128.
    """

    sides = 1

    def logits(self, rows_N: Tensor, columns_M: Tensor) -> Tensor:
        """Return (H, N, M) float32; (B, H, N, M) for places of each example."""
        distance_NM = (rows_N.unsqueeze(-1) - columns_M.unsqueeze(-2)).clamp(0, FARTHEST)
        return self.table[self.buckets_F[distance_NM]].movedim(-1, -3).float()
