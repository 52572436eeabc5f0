"""The contract of position schemes."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from torch import Tensor, nn

from attention_impls.contract.dims import Dims
from lra.core.cards import PositionCard


class Position(nn.Module, ABC):
    """A position scheme. Each hook does nothing by default; a scheme overrides what it acts on.

    One instance serves all layers of a model.
    """

    card: ClassVar[PositionCard]

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims

    def embed(self, positions_N: Tensor) -> Tensor | None:
        """Return what is added to the embedded input, (N, D), or None.

        For places of each example, (B, N), it is (B, N, D).
        """
        return None

    def rotate(self, x_BHNK: Tensor, positions_N: Tensor) -> Tensor:
        """Return queries or keys turned by their positions: (N), or (B, N) of each example."""
        return x_BHNK

    def logits(self, rows_N: Tensor, columns_M: Tensor) -> Tensor | None:
        """Return what is added to a block of logits, (H, N, M) float32, or None.

        Called block by block, so that a window stays a window. Where rows (B, N), columns (B, M) or
        both are places of each example, it is (B, H, N, M).
        """
        return None
