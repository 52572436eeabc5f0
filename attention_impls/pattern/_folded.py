"""Blocks of queries as examples of one fused call, beside copies of all keys that they read.

B batch   H heads   K width of a query or key head   V width of a value head
U blocks of queries   S queries in a block   P keys as laid out   W keys that a block reads

For a GPU, where few large calls count, for compilers, and for position schemes that train what
they add to the logits: the inputs keep their own type, and one softmax spans keys from several
places. A key that is copied to a block takes as long as some hundred of its pairs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls._once import once_differentiable
from attention_impls.pattern._layouts import divided

MOST_TIMES = 4
"""By how much a block of queries may grow, where fewer blocks have fewer copies of keys."""

ALIGNED = 16
"""Keys by which a row of a mask advances; torch copies a mask of other rows."""


def folded_size(size: int, reach: int) -> int:
    """Return S for a band: a block of `size`, or up to MOST_TIMES it where a side is as long."""
    largest = MOST_TIMES * size
    while size < largest and 2 * size <= reach + 1:
        size *= 2
    return size


def windows_beside(x_BHPK: Tensor, size: int, shifts: int, *others_BHUWK: Tensor) -> Tensor:
    """Return overlapping windows of the keys, then other keys of each block, (B, U, H, W, K).

    A window is as wide as `shifts` blocks, and begins one block behind the window before it.
    """
    copied: Tensor = _WindowsBeside.apply(x_BHPK, size, shifts, *others_BHUWK)  # type: ignore[no-untyped-call]
    return copied


class _WindowsBeside(torch.autograd.Function):
    """Windows are copied by blocks of keys, and their gradients added so: an index would add
    gradients in any order, and torch's own slices each fill a tensor of all keys."""

    @staticmethod
    def forward(ctx: Any, x_BHPK: Tensor, size: int, shifts: int, *others_BHUWK: Tensor) -> Tensor:
        """Copy once."""
        x_BHUSK = divided(x_BHPK, 2, -1, size)
        ctx.shifts, ctx.shape = shifts, x_BHUSK.shape
        ctx.widths = [shifts * size, *(other.shape[3] for other in others_BHUWK)]
        count = x_BHUSK.shape[2] - shifts + 1
        shifted = (x_BHUSK[:, :, shift : shift + count] for shift in range(shifts))
        return beside(*shifted, *others_BHUWK)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_BUHWK: Tensor) -> tuple[Tensor | None, ...]:
        """Shifted by a block, no two windows meet."""
        d_BHUWK, *others_BHUWK = torch.split(d_BUHWK.transpose(1, 2), ctx.widths, dim=3)
        count, size = d_BHUWK.shape[2], ctx.shape[3]
        dx_BHUSK = d_BHUWK.new_zeros(ctx.shape)
        for shift in reversed(range(ctx.shifts)):
            columns = slice(shift * size, (shift + 1) * size)
            dx_BHUSK[:, :, shift : shift + count] += d_BHUWK[:, :, :, columns]
        return dx_BHUSK.flatten(2, 3), None, None, *others_BHUWK


def beside(*keys_BHUWK: Tensor) -> Tensor:
    """Return keys of all places one behind the other, (B, U, H, W, K)."""
    return torch.cat([keys.transpose(1, 2) for keys in keys_BHUWK], dim=3)


def attend_blocks(
    q_BHUSK: Tensor,
    k_BUHWK: Tensor,
    v_BUHWV: Tensor,
    permitted: list[Tensor],
    bias_HUSW: Tensor | None,
    *,
    lonely: bool,
    dropout: float,
) -> Tensor:
    """Return softmax(q k / sqrt(K) + bias) v of each block over its keys, (B, H, U, S, V).

    `permitted` (boolean) follows the places of the keys, each (B, H, U, S, W') or of size 1 where
    all agree. A query without a key attends to everything; its output is zero where `lonely`, and
    else for nobody to read.
    """
    batch, _, count, _, _ = q_BHUSK.shape
    agreed = torch.broadcast_shapes(*(part.shape[:-1] for part in permitted))  # type: ignore[no-untyped-call]
    permitted_BHUSW = torch.cat([part.expand(*agreed, -1) for part in permitted], dim=-1)
    mask, any_key = folded_mask(permitted_BHUSW, bias_HUSW, q_BHUSK, batch, count)
    out = F.scaled_dot_product_attention(
        folded(q_BHUSK, batch, count),
        k_BUHWK.flatten(0, 1),
        v_BUHWV.flatten(0, 1),
        attn_mask=mask,
        dropout_p=dropout,
    )
    out_BHUSV = divided(out, 0, batch, count).transpose(1, 2)
    return out_BHUSV.masked_fill(~any_key, 0.0) if lonely else out_BHUSV


def folded_mask(
    permitted_BHUSW: Tensor, bias_HUSW: Tensor | None, like: Tensor, batch: int, count: int
) -> tuple[Tensor, Tensor]:
    """Return what is added to logits, (B * U, H, S, W) or of size 1 where all agree, and which
    queries have a key, (B, H, U, S, 1). A query without one reads everything, so that its softmax
    is finite."""
    any_key = permitted_BHUSW.any(dim=-1, keepdim=True)
    nothing = like.new_zeros(()) if bias_HUSW is None else bias_HUSW.to(like.dtype)
    # By one operation: torch makes a mask of numbers from a boolean one by three.
    mask = torch.where(permitted_BHUSW | ~any_key, nothing, like.new_full((), -math.inf))
    return folded(mask, batch, count), any_key


def folded(x: Tensor, batch: int, count: int) -> Tensor:
    """(B, H, U, ...) to (B * U, H, ...); of size 1 where it is of size 1 in both."""
    if len(x) > 1 or x.shape[2] > 1:
        x = x.expand(batch, -1, count, *[-1] * (x.dim() - 3))
    return x.transpose(1, 2).flatten(0, 1)
