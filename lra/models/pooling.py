"""Pooling: from the vectors of all positions to one for each sequence.

B sequences, N positions, D model width
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from lra.core.protocol import Rules

Pooling = Literal["cls", "mean", "first", "none"]


def pool(x_BND: Tensor, mask_BN: Tensor | None, pooling: Pooling, rules: Rules) -> Tensor:
    """Return (B, D); without pooling all vectors, (B, N, D).

    Under `lra2021` rules the mean runs over padding too.
    """
    if pooling == "none":
        return x_BND
    if pooling != "mean":
        return x_BND[:, 0]
    return mean(x_BND, None if rules == "lra2021" else mask_BN)


def mean(x_BND: Tensor, mask_BN: Tensor | None) -> Tensor:
    """Return the mean over real positions, (B, D); zero for a sequence that has none."""
    if mask_BN is None:
        return x_BND.mean(dim=1)
    total_BD = x_BND.masked_fill(~mask_BN.unsqueeze(-1), 0.0).sum(dim=1)
    return total_BD / mask_BN.sum(dim=1, keepdim=True).clamp(min=1)
