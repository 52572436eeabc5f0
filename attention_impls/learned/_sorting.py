"""How the Sinkhorn Transformer makes a sort of what its blocks want, and puts it beside them.

B batch   H heads   P = B H   U blocks   W blocks as sources   S positions in a block   K head width
X = 2 S positions in both blocks
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attention_impls._write import write
from attention_impls.contract import causal_mask

FLOOR = 1e-20
"""Least share of real positions in a sorted slot that can be told from none in float32."""


def sort(wanted_BHUW: Tensor, filled_BU: Tensor, iterations: int, causal: bool) -> Tensor:
    """Return S, (B, H, U, W): columns and then rows made to sum to 1, in logarithms.

    Blocks without a real position want themselves and are wanted by none, so that nothing is empty.
    Causal, rows alone sum to 1, over earlier blocks; a row without any is zero.
    """
    count = wanted_BHUW.shape[2]
    filled_B1UW = (filled_BU[:, :, None] & filled_BU[:, None, :]).unsqueeze(1)
    if causal:
        earlier_UW = causal_mask(count, count, wanted_BHUW.device).tril(-1)
        permitted = filled_B1UW & earlier_UW
        any_B1U1 = permitted.any(-1, keepdim=True)
        logits = wanted_BHUW.masked_fill(~permitted & any_B1U1, -math.inf)
        return logits.softmax(-1).masked_fill(~any_B1U1, 0.0)
    unit_UW = torch.eye(count, dtype=torch.bool, device=wanted_BHUW.device)
    empty_B1U1 = ~filled_BU[:, None, :, None]
    wanted_BHUW = wanted_BHUW.masked_fill(~filled_B1UW, -math.inf)
    wanted_BHUW = wanted_BHUW.masked_fill(unit_UW & empty_B1U1, 0.0)
    for _ in range(iterations):
        wanted_BHUW = wanted_BHUW.log_softmax(-2).log_softmax(-1)
    return wanted_BHUW.exp() if iterations else wanted_BHUW.softmax(-1)


def with_sorted(
    x_BHUSK: Tensor,
    sort_BHUW: Tensor,
    shares_BHUS: Tensor | None = None,
    real_BUS: Tensor | None = None,
) -> Tensor:
    """Return [x; S x], (B, U, H, X, K): each block, and behind it the mix sorted towards it.

    Positions that are not `real`, where given, are zero in both. Each slot of the mix is divided by
    its share, where given, and zero where that is not above the floor. The mix is made in the
    precision of the sort.
    """
    both_BUHXK: Tensor = _WithSorted.apply(x_BHUSK, sort_BHUW, shares_BHUS, real_BUS)  # type: ignore[no-untyped-call]
    return both_BUHXK


class _WithSorted(torch.autograd.Function):
    """One array, written in place head by head; the gradient reads x and S x out of it again.

    The gradient of a share holds its inverse once. By way of `reciprocal` it would hold the square,
    which has no place in float32 next to the floor.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x_BHUSK: Tensor,
        sort_BHUW: Tensor,
        shares_BHUS: Tensor | None,
        real_BUS: Tensor | None,
    ) -> Tensor:
        batch, heads, count, size, width = x_BHUSK.shape
        both_BUHXK = x_BHUSK.new_empty(batch, count, heads, 2 * size, width)
        own_BUHSK, mix_BUHSK = both_BUHXK.chunk(2, dim=3)
        x_BUHSK = x_BHUSK.transpose(1, 2)
        if real_BUS is None:
            own_BUHSK.copy_(x_BUHSK)
        else:
            # One pass; filling a copy takes five times as long.
            write(own_BUHSK, torch.mul, x_BUHSK, real_BUS[:, :, None, :, None].to(x_BUHSK))
        with torch.autocast(x_BHUSK.device.type, enabled=False):
            for head in range(heads):
                sort_BUW = sort_BHUW[:, head]
                own_BWF = own_BUHSK[:, :, head].flatten(2)
                mix_BUSK = mix_BUHSK[:, :, head]
                if own_BWF.dtype == sort_BUW.dtype:
                    found_BUF = write(mix_BUSK.flatten(2), torch.bmm, sort_BUW, own_BWF)
                else:
                    found_BUF = torch.bmm(sort_BUW, own_BWF.to(sort_BUW.dtype))
                found_BUSK = found_BUF.view_as(mix_BUSK)
                # Before it is rounded: a small share of the values is nothing in float16.
                if shares_BHUS is not None:
                    found_BUSK.mul_(_inverse(shares_BHUS[:, head]).unsqueeze(-1))
                if own_BWF.dtype != sort_BUW.dtype:
                    mix_BUSK.copy_(found_BUSK)
        ctx.save_for_backward(both_BUHXK, sort_BHUW, shares_BHUS, real_BUS)
        return both_BUHXK

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream_BUHXK: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        """Return the gradients, in full precision wherever it is called."""
        both_BUHXK, sort_BHUW, shares_BHUS, real_BUS = ctx.saved_tensors
        own_BUHSK, mix_BUHSK = both_BUHXK.chunk(2, dim=3)
        down_BUHSK, up_BUHSK = upstream_BUHXK.chunk(2, dim=3)
        batch, count, heads, size, width = own_BUHSK.shape
        # As projections have it: positions, then heads.
        dx_BUSHK = own_BUHSK.new_empty(batch, count, size, heads, width)
        dsort_BHUW = torch.empty_like(sort_BHUW)
        dshares_BHUS = None if shares_BHUS is None else torch.empty_like(shares_BHUS)
        with torch.autocast(upstream_BUHXK.device.type, enabled=False):
            for head in range(heads):
                sort_BUW = sort_BHUW[:, head]
                up_BUSK = up_BUHSK[:, :, head].to(sort_BUW.dtype)
                if shares_BHUS is not None and dshares_BHUS is not None:
                    shares_BUS = shares_BHUS[:, head]
                    up_BUSK = up_BUSK * _inverse(shares_BUS).unsqueeze(-1)
                    dshares_BHUS[:, head] = -(up_BUSK * mix_BUHSK[:, :, head]).sum(-1)
                up_BUF, own_BWF = up_BUSK.flatten(2), own_BUHSK[:, :, head].flatten(2)
                dsort_BHUW[:, head] = torch.bmm(up_BUF, own_BWF.to(up_BUF.dtype).mT)
                back_BUSK = torch.bmm(sort_BUW.mT, up_BUF).view_as(up_BUSK)
                dx_BUSHK[..., head, :] = back_BUSK + down_BUHSK[:, :, head]
        if real_BUS is not None:
            dx_BUSHK.mul_(real_BUS[..., None, None])
        return dx_BUSHK.permute(0, 3, 1, 2, 4), dsort_BHUW, dshares_BHUS, None


def _inverse(shares: Tensor) -> Tensor:
    """Return the inverse of each share, and zero for one that is not above the floor."""
    return shares.reciprocal().masked_fill(shares <= FLOOR, 0.0)


def dense_sort(wanted: Tensor, filled_BU: Tensor, iterations: int, *, causal: bool) -> Tensor:
    """For the oracle: shares divided by their sums, over and over."""
    both = filled_BU[:, None, :, None] & filled_BU[:, None, None, :]
    if causal:
        both = both & torch.ones_like(both).tril(-1)
    top = wanted.detach().amax((-2, -1), keepdim=True) if wanted.numel() else 0.0
    share = torch.exp(wanted - top) * both
    for _ in range(1 if causal else iterations):
        if not causal:
            total = share.sum(-2, keepdim=True)
            share = share / torch.where(total > 0.0, total, 1.0)
        total = share.sum(-1, keepdim=True)
        share = share / torch.where(total > 0.0, total, 1.0)
    if not causal and not iterations:
        total = share.sum(-1, keepdim=True)
        share = share / torch.where(total > 0.0, total, 1.0)
    return share
