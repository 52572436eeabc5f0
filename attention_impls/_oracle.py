"""The dense float64 softmax that mechanisms with a softmax are checked against.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attention_impls.contract import Context


def softmax_oracle(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    context: Context,
    pattern_NM: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return softmax(q k / sqrt(K) + bias) v over the permitted pairs, and its weights.

    (B, H, N, V) and (B, H, N, M), both float64. `pattern_NM` (boolean) narrows which pairs may
    interact. The bias goes by places where these are given, causality by index. A row with no
    permitted pair has zero weights and finite gradients.
    """
    q, k, v = q_BHNK.double(), k_BHMK.double(), v_BHMV.double()
    n, m = q.shape[2], k.shape[2]
    logits_BHNM = torch.einsum("bhnk,bhmk->bhnm", q, k) / math.sqrt(q.shape[-1])

    columns_M = torch.arange(m, device=q.device)
    rows_N = torch.arange(n, device=q.device) + (m - n if context.causal else 0)
    if context.position is not None:
        places_N = rows_N if context.positions_BN is None else context.positions_BN
        places_M = columns_M
        if context.source_positions_BM is not None:
            places_M = context.source_positions_BM
        bias_HNM = context.position.logits(places_N, places_M)
        if bias_HNM is not None:
            logits_BHNM = logits_BHNM + bias_HNM.double()

    permitted = torch.ones_like(logits_BHNM, dtype=torch.bool)
    if context.causal:
        permitted &= columns_M <= rows_N[:, None]
    if context.key_mask_BM is not None:
        permitted &= context.key_mask_BM[:, None, None, :]
    if context.mask_BNM is not None:
        permitted &= context.mask_BNM[:, None]
    if pattern_NM is not None:
        permitted &= pattern_NM.to(q.device)

    logits_BHNM = logits_BHNM.masked_fill(~permitted, -math.inf)
    largest = logits_BHNM.detach().amax(dim=-1, keepdim=True)
    exponentials = torch.exp(logits_BHNM - largest.masked_fill(largest == -math.inf, 0.0))
    total = exponentials.sum(dim=-1, keepdim=True)
    weights_BHNM = exponentials / total.masked_fill(total == 0.0, 1.0)
    return torch.einsum("bhnm,bhmv->bhnv", weights_BHNM, v), weights_BHNM
