"""Which query may attend to which key, and what positions add to the logit of each pair.

B batch   N queries   M keys   H heads
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls.contract import Context, causal_mask, position_ids


def permitted_pairs(
    n: int,
    m: int,
    *,
    causal: bool,
    key_mask_BM: Tensor | None,
    device: torch.device,
    mask_BNM: Tensor | None = None,
) -> Tensor | None:
    """Return a boolean that broadcasts to (B, H, N, M), or None where every pair is permitted."""
    permitted = None if key_mask_BM is None else key_mask_BM[:, None, None, :]
    if causal and n > 1:  # a single query stands at the end and sees every key
        causal_NM = causal_mask(n, m, device)
        permitted = causal_NM if permitted is None else permitted & causal_NM
    if mask_BNM is not None:
        mask_B1NM = mask_BNM.unsqueeze(1)
        permitted = mask_B1NM if permitted is None else permitted & mask_B1NM
    return permitted


def position_logits(n: int, m: int, context: Context, device: torch.device) -> Tensor | None:
    """Return what the position scheme adds to all logits, (H, N, M) float32, or None; for places of
    each example (B, H, N, M).

    `m` counts remembered keys too: decoding is causal, so its queries stand at the end of them.
    """
    if context.position is None:
        return None
    rows_N, columns_M = position_ids(n, m, context, None, device)
    return context.position.logits(rows_N, columns_M)
