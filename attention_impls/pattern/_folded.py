"""Banded attention as one fused call: blocks folded into the batch, each beside its window.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
U blocks of queries   S queries in a block   W keys in a block's window

For a GPU, where few large calls count and copying a window costs little, and for position schemes
that train what they add to the logits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls.contract import Position
from attention_impls.dense._fused import fused_softmax
from attention_impls.pattern._band import Band


def folded_attention(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    band: Band,
    *,
    key_mask_BM: Tensor | None,
    position: Position | None,
    origin: int,
    dropout: float,
) -> Tensor:
    """Return softmax over the band times v, (B, H, N, V), in the dtype of q."""
    batch, device, dtype = len(q_BHNK), q_BHNK.device, q_BHNK.dtype
    visible_BUW, _ = band.visible(key_mask_BM, device)
    permitted = visible_BUW.unsqueeze(-2) & band.window_mask(device)
    permitted = permitted.expand(batch, -1, -1, -1).flatten(0, 1).unsqueeze(1)
    out = fused_softmax(
        band.pad_queries(q_BHNK, dtype).transpose(1, 2).flatten(0, 1),
        band.windows(band.pad_keys(k_BHMK, dtype)).mT.transpose(1, 2).flatten(0, 1),
        band.windows(band.pad_keys(v_BHMV, dtype)).mT.transpose(1, 2).flatten(0, 1),
        permitted,
        _bias(band, batch, position, origin, device),
        dropout=dropout,
    )
    out_BHUSV = out.unflatten(0, (batch, band.count)).transpose(1, 2)
    return out_BHUSV.flatten(2, 3)[:, :, : band.n]


def _bias(
    band: Band, batch: int, position: Position | None, origin: int, device: torch.device
) -> Tensor | None:
    """Return what positions add, (B * U, H, S, W), or None."""
    if position is None:
        return None
    added = [
        position.logits(*band.positions(block, origin, device)) for block in range(band.count)
    ]
    present = [bias_HSW for bias_HSW in added if bias_HSW is not None]
    if not present:
        return None
    return torch.stack(present).expand(batch, -1, -1, -1, -1).flatten(0, 1)
