"""Banded attention as one fused call: all of it, or blocks folded into the batch.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
U blocks of queries   S queries in a block   W keys in a block's window
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls.contract import Position
from attention_impls.dense._fused import fused_softmax
from attention_impls.pattern._band import Band
from attention_impls.pattern._bias import stacked
from attention_impls.pattern._folded import attend_blocks, windows_beside


def dense_attention(
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
    """Return softmax over the band times v, (B, H, N, V), under an (N, M) mask."""
    device = q_BHNK.device
    permitted = band.mask(device)
    if key_mask_BM is not None:
        real = key_mask_BM[:, None, None, :]
        permitted = real if permitted is None else permitted & real
    bias_HNM = None
    if position is not None:
        rows_N = torch.arange(origin, origin + band.n, device=device)
        columns_M = torch.arange(origin + band.n - band.m, origin + band.n, device=device)
        bias_HNM = position.logits(rows_N, columns_M.clamp(min=0))
    return fused_softmax(q_BHNK, k_BHMK, v_BHMV, permitted, bias_HNM, dropout=dropout)


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
    """Return softmax over the band times v, (B, H, N, V), in the dtype of q; each block of queries
    is one more example, beside a copy of its window.

    For a GPU, for compilers, and for position schemes that train what they add to the logits.
    """
    device, dtype = q_BHNK.device, q_BHNK.dtype
    shifts = band.before + 1 + band.after
    real_BUW = band.real(key_mask_BM, device).unfold(1, band.width, band.size)
    out_BHUSV = attend_blocks(
        band.pad_queries(q_BHNK, dtype),
        windows_beside(band.pad_keys(k_BHMK, dtype), band.size, shifts),
        windows_beside(band.pad_keys(v_BHMV, dtype), band.size, shifts),
        [real_BUW[:, None, :, None] & band.window_mask(device)],
        _bias(band, position, origin, device),
        lonely=key_mask_BM is not None,
        dropout=dropout,
    )
    return out_BHUSV.flatten(2, 3)[:, :, : band.n]


def _bias(
    band: Band, position: Position | None, origin: int, device: torch.device
) -> Tensor | None:
    """Return what positions add, (H, U, S, W), or None."""
    if position is None:
        return None
    added = [position.logits(*band.positions(block, origin, device)) for block in range(band.count)]
    return stacked(added, dim=1)
