"""PyTorch's fused attention behind our masks, for `sdpa` and for short inputs elsewhere.

B batch   N queries   M keys   H heads   G heads of keys and values   K width of a query or key head
V width of a value head
"""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor


def fused_softmax(
    q_BHNK: Tensor,
    k_BGMK: Tensor,
    v_BGMV: Tensor,
    permitted: Tensor | None,
    bias: Tensor | None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Return softmax(q k / sqrt(K) + bias) v over permitted keys, (B, H, N, V).

    Where there are fewer heads of keys than of queries, each serves H / G of these in a row.

    `permitted` (boolean) and `bias` broadcast to (B, H, N, M); None permits all, or with `causal`
    (which needs N = M) every earlier key. A row without any permitted key gives zero with finite
    gradients on every backend: it attends to everything and its output is dropped.
    """
    mask = None
    if permitted is not None:
        any_key = permitted.any(dim=-1, keepdim=True)
        mask = permitted | ~any_key
    if bias is not None:
        bias = bias if bias.dim() == 4 else bias.unsqueeze(0)
        mask = (bias if mask is None else bias.masked_fill(~mask, -math.inf)).to(q_BHNK.dtype)
    out_BHNV = F.scaled_dot_product_attention(
        q_BHNK,
        k_BGMK,
        v_BGMV,
        attn_mask=mask,
        dropout_p=dropout,
        is_causal=causal,
        enable_gqa=q_BHNK.shape[1] != k_BGMK.shape[1],
    )
    return out_BHNV if permitted is None else out_BHNV.masked_fill(~any_key, 0.0)
