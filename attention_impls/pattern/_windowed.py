"""A band as one part of a softmax: its output and its log sum.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
U blocks of queries   S queries in a block   P padded keys   W keys in a window
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls.contract import Position
from attention_impls.pattern._band import Band
from attention_impls.pattern._bias import positional
from attention_impls.pattern._layouts import Windows
from attention_impls.pattern._parts import Part, alike, attend_part


def window_part(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    band: Band,
    *,
    key_mask_BM: Tensor | None,
    position: Position | None,
    origin: int,
    dropout: float,
    autograd: bool,
) -> tuple[Tensor, Tensor]:
    """Return softmax over the band times v, (B, H, N, V), and its log sum, (B, H, N).

    `origin` is the position of the first query; `autograd` as in `attend_part`.
    """
    device, layout = q_BHNK.device, Windows(band)
    if key_mask_BM is None:
        key_mask_BM = torch.ones(1, band.m, dtype=torch.bool, device=device)
    last = origin + band.n - 1
    rows_N = torch.arange(origin, origin + band.count * band.size, device=device)
    places_P = torch.arange(band.padded, device=device) + origin - band.lead
    part = Part(
        layout,
        real_BP=band.pad_keys(key_mask_BM[:, None, :, None], torch.bool)[:, 0, :, 0],
        rule=alike(band.outside(device)),
        bias=positional(
            position,
            layout,
            rows_N.clamp(max=last).view(band.count, band.size),
            places_P.clamp(min=0, max=last),
        ),
        dropout=dropout,
    )
    out_BHUSV, lse_BHUS = attend_part(
        band.pad_queries(q_BHNK, q_BHNK.dtype),
        band.pad_keys(k_BHMK, k_BHMK.dtype),
        band.pad_keys(v_BHMV, v_BHMV.dtype),
        part,
        autograd=autograd,
    )
    return out_BHUSV.flatten(2, 3)[:, :, : band.n], lse_BHUS.flatten(2, 3)[:, :, : band.n]
