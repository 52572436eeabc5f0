"""Attention in sorted chunks on a GPU: all heads and rounds in one fused call, merged by log sums.

B batch   N positions   H heads   K width of a query or key head   V width of a value head
R rounds   L rounds of all heads of all examples, B H R   U chunks   S positions in a chunk
P = U S places   W keys that a chunk reads, those of the chunk before it and its own

All rounds share one softmax: a pair counts as often as rounds see it. Where a position sees nothing
but itself in a round, or nothing at all, that round counts only if no other sees more.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls._once import once_differentiable
from attention_impls.dense._log_sums import (
    attend_with_log_sums,
    gradients_by_log_sums,
    has_log_sums,
)
from attention_impls.learned._rounds import Rounds

UNREAD = 1e30
"""A log sum from which every weight is 0, in float32 too."""


def takes_merged(q_BHNK: Tensor, v_BHNV: Tensor, size: int, dropout: float) -> bool:
    """Whether a kernel gives log sums for chunks of this size; none does with dropout."""
    q_BHSK = q_BHNK[:, :, :1].expand(-1, -1, size, -1)
    return not dropout and has_log_sums(q_BHSK, v_BHNV, size)


def attend_merged(q_BHNK: Tensor, k_BHNK: Tensor, v_BHNV: Tensor, rounds: Rounds) -> Tensor:
    """Return softmax over the keys of all rounds times v, (B, H, N, V); zero without a key."""
    size = rounds.size
    # As few bytes as hold a bucket: a sort takes its time by them.
    order_BHRN = rounds.buckets_BHRN.to(torch.int16).argsort(dim=-1, stable=True)
    n = order_BHRN.shape[-1]
    count = -(-n // size)
    places_N = torch.arange(n, device=order_BHRN.device)
    back_BHRN = torch.empty_like(order_BHRN).scatter_(
        -1, order_BHRN, places_N.expand_as(order_BHRN)
    )
    order_BHRP = F.pad(order_BHRN, (0, count * size - n))
    bias, level_BHRP = _bias(order_BHRP, n, rounds, q_BHNK.dtype)
    level_BHRN = None if level_BHRP is None else level_BHRP.gather(-1, back_BHRN)
    out: Tensor = _Merged.apply(  # type: ignore[no-untyped-call]
        q_BHNK, k_BHNK, v_BHNV, order_BHRP, back_BHRN, bias, level_BHRN, size, rounds.scale
    )
    return out


def _bias(
    order_BHRP: Tensor, n: int, rounds: Rounds, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """Return what is added to logits, zero or minus infinity, broadcasting to (L, U, S, W), and
    where it differs how much each place sees, (B, H, R, P): nothing (0), itself (1), others (2).

    A row that sees nothing has zeros, for the kernel's sake.
    """
    size, device = rounds.size, order_BHRP.device
    places_LUS = order_BHRP.reshape(-1, order_BHRP.shape[-1] // size, size)
    count = places_LUS.shape[1]
    width = min(2, count) * size
    own_SW = torch.zeros(size, width, dtype=torch.bool, device=device)
    if rounds.own:
        own_SW.diagonal(width - size).fill_(True)
    visible = None
    if count * size > n:
        there_P = torch.arange(count * size, device=device) < n
        visible = _windows(_ring(there_P.view(1, -1), size).unsqueeze(-1), size).mT
    if rounds.key_mask_BN is not None:
        real_BHRP = rounds.key_mask_BN[:, None, None].expand(*order_BHRP.shape[:3], -1)
        real_BHRP = real_BHRP.gather(-1, order_BHRP)
        real_LX = _ring(real_BHRP.reshape(-1, count * size), size)
        real_LU1W = _windows(real_LX.unsqueeze(-1), size).mT
        visible = real_LU1W if visible is None else visible & real_LU1W
    if rounds.causal:
        keys_LX = _ring(order_BHRP.reshape(-1, count * size), size)
        keys_LU1W = _windows(keys_LX.unsqueeze(-1), size).mT
        earlier = keys_LU1W <= places_LUS.unsqueeze(-1)
        visible = earlier if visible is None else visible & earlier
    if visible is not None and (rounds.causal or rounds.key_mask_BN is not None or n == 1):
        others = (visible & ~own_SW).any(-1, keepdim=True)
        anything = visible.any(-1, keepdim=True).expand_as(others)
        permitted = (visible & ~(own_SW & others)) | ~anything
        level_LUS1 = others.to(torch.int8) + anything.to(torch.int8)
        level = level_LUS1.expand(len(places_LUS), -1, size, -1).reshape_as(order_BHRP)
    else:
        permitted, level = ~own_SW if visible is None else visible & ~own_SW, None
    bias = torch.zeros_like(permitted, dtype=dtype).masked_fill(~permitted, -math.inf)
    return bias, level


def _ring(x_LP: Tensor, size: int) -> Tensor:
    """Return the last chunk, which the first reads, then all of them.

    A single chunk would read itself twice, which changes nothing.
    """
    return x_LP if x_LP.shape[1] == size else torch.cat([x_LP[:, -size:], x_LP], dim=1)


def _windows(ring_LXK: Tensor, size: int) -> Tensor:
    """Return the places that each chunk reads, (L, U, W, K), a view."""
    width = min(2 * size, ring_LXK.shape[1])
    return ring_LXK.unfold(1, width, size).mT


def _rows(x_BHNK: Tensor) -> Tensor:
    """(B, H, N, K) to (B * N * H, K), as projections have it, a view of what they return."""
    return x_BHNK.transpose(1, 2).reshape(-1, x_BHNK.shape[-1])


class _Merged(torch.autograd.Function):
    """The softmax of all rounds and its gradient.

    Sorts are undone by gathering with the inverse permutation: adding by index, as autograd would,
    takes atomic operations.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        order_BHRP: Tensor,
        back_BHRN: Tensor,
        bias: Tensor,
        level_BHRN: Tensor | None,
        size: int,
        scale: float,
    ) -> Tensor:
        """Keep what is sorted, the output and the log sums over all rounds."""
        (batch, heads, number, length), n = order_BHRP.shape, back_BHRN.shape[-1]
        chunks = (batch * heads * number, length // size)
        index_LP = _sorted_rows(order_BHRP, n)
        q_LUSK = _rows(q_BHNK).index_select(0, index_LP.flatten()).view(*chunks, size, -1)
        index_LX = _ring(index_LP, size)
        k_LUWK, v_LUWV = (
            _windows(_rows(x).index_select(0, index_LX.flatten()).view(*index_LX.shape, -1), size)
            for x in (k_BHNK, v_BHNV)
        )
        bias_LUSW = bias.expand(*q_LUSK.shape[:3], k_LUWK.shape[2])
        out_LUSV, lse_LUS, again = attend_with_log_sums(q_LUSK, k_LUWK, v_LUWV, bias_LUSW, scale)

        lse_BHRN = lse_LUS.reshape(order_BHRP.shape).gather(-1, back_BHRN)
        if level_BHRN is not None:
            top_BH1N = level_BHRN.amax(2, keepdim=True)
            lse_BHRN = lse_BHRN.masked_fill(level_BHRN < top_BH1N, -math.inf)
        total_BH1N = lse_BHRN.logsumexp(2, keepdim=True)
        shares_BHRN = (lse_BHRN - total_BH1N).exp()
        log_sums_BHRN = total_BH1N.expand_as(lse_BHRN)
        if level_BHRN is not None:
            shares_BHRN = shares_BHRN * (top_BH1N > 0)
            log_sums_BHRN = log_sums_BHRN.masked_fill(shares_BHRN == 0.0, UNREAD)
        index_X = _places(back_BHRN, size, length // size, size)
        out_BNHRV = _kernel_rows(out_LUSV).index_select(0, index_X)
        out_BNHRV = out_BNHRV.view(batch, n, heads, number, -1)
        # In float32 until the rounds are added up.
        shares_BNHR1 = shares_BHRN.permute(0, 3, 1, 2).unsqueeze(-1)
        out_BNHV = (out_BNHRV * shares_BNHR1).sum(3).to(v_BHNV.dtype)

        ctx.save_for_backward(
            q_LUSK,
            k_LUWK,
            v_LUWV,
            bias_LUSW,
            out_BNHV,
            log_sums_BHRN,
            order_BHRP,
            back_BHRN,
            *again,
        )
        ctx.scale = scale
        return out_BNHV.transpose(1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout_BHNV: Tensor) -> tuple[Tensor | None, ...]:
        """Sort the gradient and what is kept of all rounds, and add up what rounds give back."""
        q, k, v, bias, out_BNHV, log_sums_BHRN, order_BHRP, back_BHRN, *again = ctx.saved_tensors
        batch, heads, _, n = back_BHRN.shape
        length, (chunks, count, size, _), width = order_BHRP.shape[-1], q.shape, k.shape[2]
        index_X = _sorted_rows(order_BHRP, n).flatten()
        dout_LUSV, out_LUSV = (
            rows.index_select(0, index_X).view(chunks, count, size, -1)
            for rows in (_rows(dout_BHNV.to(q.dtype)), out_BNHV.flatten(0, 2))
        )
        lse_BHRN = log_sums_BHRN.gather(-1, order_BHRP[..., :n])
        lse_LUS = F.pad(lse_BHRN, (0, length - n), value=UNREAD).view(chunks, count, size)
        dq, dk, dv = gradients_by_log_sums(
            dout_LUSV, q, k, v, bias, out_LUSV, lse_LUS, tuple(again), ctx.scale
        )

        def put_back(dx: Tensor, index_X: Tensor) -> Tensor:
            dx_XK = _kernel_rows(dx).index_select(0, index_X)
            return dx_XK.view(batch, n, heads, -1, dx.shape[-1]).sum(3).transpose(1, 2)

        index_X = _places(back_BHRN, size, count, size)
        windows_X = _places(back_BHRN, size, count, width)
        return (
            put_back(dq, index_X),
            put_back(dk, windows_X),
            put_back(dv, windows_X),
            *[None] * 6,
        )


def _kernel_rows(x_LUSK: Tensor) -> Tensor:
    """(L, U, S, K) to (L * S * U, K), a view of what kernels return."""
    return x_LUSK.transpose(1, 2).reshape(-1, x_LUSK.shape[-1])


def _sorted_rows(order_BHRP: Tensor, n: int) -> Tensor:
    """Return the row of each place among those of `_rows`, (L, P)."""
    (batch, heads), device = order_BHRP.shape[:2], order_BHRP.device
    first_B = torch.arange(0, batch * n * heads, n * heads, device=device)
    first_BH = first_B.unsqueeze(-1) + torch.arange(heads, device=device)
    return torch.add(first_BH[:, :, None, None], order_BHRP, alpha=heads).flatten(0, 2)


def _places(back_BHRN: Tensor, size: int, count: int, width: int) -> Tensor:
    """Return the row of each position in each round among `_kernel_rows` of chunks that are
    `width` wide, (B * N * H * R); where these are windows, the rows in both that read it."""
    shape = back_BHRN.shape[:3]
    rounds = torch.arange(math.prod(shape), device=back_BHRN.device).view(*shape, 1)
    first, chunk, slot = rounds * (width * count), back_BHRN // size, back_BHRN % size
    rows = [first + (slot + (width - size)) * count + chunk]
    if width > size:
        rows.append(first + slot * count + (chunk + 1) % count)
    return torch.cat(rows, dim=2).permute(0, 3, 1, 2).flatten()
