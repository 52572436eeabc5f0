"""PyTorch's fused attention with its log sums, and its gradient from log sums over more keys.

B batch   H heads   N queries   M keys   K width of a query or key head   V width of a value head

A softmax over keys that come in several calls is merged by the log sums of each. The gradient of a
call needs nothing of the others but the merged output and the merged log sum.
"""

from __future__ import annotations

import torch
from torch import Tensor

ALIGNED = 8
"""The kernel of a GPU takes head widths that are multiples of this: 16 bytes in halves."""
ROWS = 32
"""It takes numbers of queries and keys that are multiples of this: log sums are laid out by it."""


def has_log_sums(q: Tensor, v: Tensor, keys: int) -> bool:
    """Whether a kernel takes queries (..., N, K) with so many keys, and values (..., V)."""
    if q.is_cpu:
        return True
    whole = q.shape[-1] % ALIGNED == 0 and v.shape[-1] % ALIGNED == 0
    return whole and q.shape[-2] % ROWS == 0 and keys % ROWS == 0 and q.dtype != torch.float64


def attend_with_log_sums(
    q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, bias_BHNM: Tensor, scale: float
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Return softmax(q k scale + bias) v, (B, H, N, V), the log sums, (B, H, N) float32 or better,
    and what the gradient wants to be given again.

    The bias has the dtype of the queries, and a permitted key in every row.
    """
    if q_BHNK.is_cpu:
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        out, lse = kernel(q_BHNK, k_BHMK, v_BHMV, attn_mask=bias_BHNM, scale=scale)
        return out, lse, ()
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    out, lse, *draws = kernel(q_BHNK, k_BHMK, v_BHMV, bias_BHNM, True, scale=scale)
    return out, lse, tuple(draws)


def gradients_by_log_sums(
    dout_BHNV: Tensor,
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    bias_BHNM: Tensor,
    out_BHNV: Tensor,
    lse_BHN: Tensor,
    again: tuple[Tensor, ...],
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of q, k and v, given the output and the log sums over all keys, of which
    these may be some."""
    if q_BHNK.is_cpu:
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        dq, dk, dv = kernel(
            dout_BHNV, q_BHNK, k_BHMK, v_BHMV, out_BHNV, lse_BHN, 0.0, False,
            attn_mask=bias_BHNM, scale=scale,
        )  # fmt: skip
        return dq, dk, dv
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention_backward
    # It reads the output as its twin writes it, heads innermost, whatever the strides say.
    out_BHNV = out_BHNV.transpose(1, 2).contiguous().transpose(1, 2)
    dq, dk, dv, _ = kernel(
        dout_BHNV, q_BHNK, k_BHMK, v_BHMV, bias_BHNM, out_BHNV, lse_BHN, *again, 0.0,
        [True, True, True, False], scale=scale,
    )  # fmt: skip
    return dq, dk, dv
