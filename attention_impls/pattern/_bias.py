"""Bias of positions, for logits that are computed by blocks.

H heads   U blocks of queries   S queries in a block   P keys as laid out
W keys that a block reads   T blocks of a tile
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attention_impls.contract import Position
from attention_impls.pattern._layouts import Layout, Tile


def stacked(added: list[Tensor | None], dim: int) -> Tensor | None:
    """Return what a scheme adds to each block, (H, S, W), along a new `dim`; None for nothing."""
    present = [bias_HSW for bias_HSW in added if bias_HSW is not None]
    return torch.stack(present, dim=dim) if present else None


def positional(
    position: Position | None, layout: Layout, rows_US: Tensor, places_P: Tensor
) -> Callable[[slice], Tensor | None] | None:
    """Return the bias of a part from the positions of its queries and of its laid out keys.

    Both are clamped to positions that exist, so that a table of positions is never left.
    """
    if position is None or position.card.acts_on != "logits":
        return None

    def bias(blocks: slice) -> Tensor | None:
        columns_TW = layout.tile(places_P.unsqueeze(-1), Tile(0, 0, blocks))[:, :, 0]
        added = [
            position.logits(rows_S, columns_W)
            for rows_S, columns_W in zip(rows_US[blocks], columns_TW, strict=True)
        ]
        return stacked(added, dim=1)

    return bias
