"""How the Sinkhorn Transformer makes a sort of what its blocks want, and puts it beside them.

B batch   H heads   P examples or heads taken at once   U blocks   W blocks as sources
N positions   S positions in a block   K head width   X = 2 S positions in both blocks
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls._once import once_differentiable
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
    x_BHNK: Tensor,
    size: int,
    sort_BHUW: Tensor,
    shares_BHUS: Tensor | None = None,
    real_BUS: Tensor | None = None,
) -> Tensor:
    """Return [x; S x], (B, U, H, X, K): each block, and behind it the mix sorted towards it.

    A last block that is short is zero behind its end; positions that are not `real`, where given,
    are zero in both. Each slot of the mix is divided by its share, where given, and zero where that
    is not above the floor. The mix is made in the precision of the sort.
    """
    both_BUHXK: Tensor = _WithSorted.apply(x_BHNK, size, sort_BHUW, shares_BHUS, real_BUS)  # type: ignore[no-untyped-call]
    return both_BUHXK


def with_sorted_at_once(
    x_BHNK: Tensor,
    size: int,
    sort_BHUW: Tensor,
    shares_BHUS: Tensor | None = None,
    real_BUS: Tensor | None = None,
) -> Tensor:
    """Return the same in few calls, by a product in the dtype of x, as a GPU has it."""
    batch, heads, n, width = x_BHNK.shape
    count = sort_BHUW.shape[2]
    if count * size > n:
        x_BHNK = F.pad(x_BHNK, (0, 0, 0, count * size - n))
    own_BHUSK = x_BHNK.reshape(batch, heads, count, size, width)
    if real_BUS is not None:
        own_BHUSK = own_BHUSK.masked_fill(~real_BUS[:, None, ..., None], 0.0)
    with torch.autocast(x_BHNK.device.type, enabled=False):
        mix_BHUF = sort_BHUW.to(x_BHNK.dtype) @ own_BHUSK.flatten(3)
        mix_BHUSK = mix_BHUF.view(own_BHUSK.shape)
        if shares_BHUS is not None:
            # A quotient, whose gradient never holds the square of a small share.
            divisors = shares_BHUS.masked_fill(shares_BHUS <= FLOOR, math.inf)
            mix_BHUSK = (mix_BHUSK / divisors.unsqueeze(-1)).to(x_BHNK.dtype)
    return torch.cat([own_BHUSK, mix_BHUSK], dim=3).transpose(1, 2)


class _WithSorted(torch.autograd.Function):
    """One array, written in place part by part; the gradient reads x and S x out of it again.

    The gradient of a share holds its inverse once. By way of `reciprocal` it would hold the square,
    which has no place in float32 next to the floor.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x_BHNK: Tensor,
        size: int,
        sort_BHUW: Tensor,
        shares_BHUS: Tensor | None,
        real_BUS: Tensor | None,
    ) -> Tensor:
        batch, heads, n, width = x_BHNK.shape
        count = sort_BHUW.shape[2]
        both_BUHXK = x_BHNK.new_empty(batch, count, heads, 2 * size, width)
        own_BHUSK, mix_BHUSK = both_BUHXK.transpose(1, 2).chunk(2, dim=3)
        _write_blocks(own_BHUSK, x_BHNK, real_BUS)
        with torch.autocast(x_BHNK.device.type, enabled=False):
            for at in _parts(batch, heads):
                sort_PUW, own_PWF, mix_PUSK = sort_BHUW[at], own_BHUSK[at].flatten(2), mix_BHUSK[at]
                if own_PWF.dtype == sort_PUW.dtype:
                    found_PUF = write(mix_PUSK.flatten(2), torch.bmm, sort_PUW, own_PWF)
                else:
                    found_PUF = torch.bmm(sort_PUW, own_PWF.to(sort_PUW.dtype))
                found_PUSK = found_PUF.view_as(mix_PUSK)
                # Before it is rounded: a small share of the values is nothing in float16.
                if shares_BHUS is not None:
                    found_PUSK.mul_(_inverse(shares_BHUS[at]).unsqueeze(-1))
                if own_PWF.dtype != sort_PUW.dtype:
                    mix_PUSK.copy_(found_PUSK)
        ctx.n = n
        ctx.save_for_backward(both_BUHXK, sort_BHUW, shares_BHUS, real_BUS)
        return both_BUHXK

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream_BUHXK: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients, in full precision wherever it is called."""
        both_BUHXK, sort_BHUW, shares_BHUS, real_BUS = ctx.saved_tensors
        own_BHUSK, mix_BHUSK = both_BUHXK.transpose(1, 2).chunk(2, dim=3)
        down_BHUSK, up_BHUSK = upstream_BUHXK.transpose(1, 2).chunk(2, dim=3)
        batch, heads, count, size, width = own_BHUSK.shape
        # As projections have it: positions, then heads.
        dx_BUSHK = own_BHUSK.new_empty(batch, count, size, heads, width)
        dx_BHUSK = dx_BUSHK.permute(0, 3, 1, 2, 4)
        dsort_BHUW = torch.empty_like(sort_BHUW)
        dshares_BHUS = None if shares_BHUS is None else torch.empty_like(shares_BHUS)
        with torch.autocast(upstream_BUHXK.device.type, enabled=False):
            for at in _parts(batch, heads):
                sort_PUW = sort_BHUW[at]
                up_PUSK = up_BHUSK[at].to(sort_PUW.dtype)
                if shares_BHUS is not None and dshares_BHUS is not None:
                    up_PUSK = up_PUSK * _inverse(shares_BHUS[at]).unsqueeze(-1)
                    dshares_BHUS[at] = -(up_PUSK * mix_BHUSK[at]).sum(-1)
                up_PUF, own_PWF = up_PUSK.flatten(2), own_BHUSK[at].flatten(2)
                dsort_BHUW[at] = torch.bmm(up_PUF, own_PWF.to(up_PUF.dtype).mT)
                back_PUSK = torch.bmm(sort_PUW.mT, up_PUF).view_as(up_PUSK)
                write(dx_BHUSK[at], torch.add, back_PUSK, down_BHUSK[at])
        if real_BUS is not None:
            dx_BUSHK.mul_(real_BUS[..., None, None])
        return dx_BHUSK.flatten(2, 3)[:, :, : ctx.n], None, dsort_BHUW, dshares_BHUS, None


def _write_blocks(own_BHUSK: Tensor, x_BHNK: Tensor, real_BUS: Tensor | None) -> None:
    """Write positions into blocks, zero where they are not real and behind the last."""
    n, size = x_BHNK.shape[2], own_BHUSK.shape[3]
    whole, rest = divmod(n, size)
    pieces = [
        (slice(whole), slice(size), torch.unflatten(x_BHNK[:, :, : n - rest], 2, (whole, size)))
    ]
    if rest:
        own_BHUSK[:, :, whole, rest:] = 0.0
        pieces.append((slice(whole, None), slice(rest), x_BHNK[:, :, None, n - rest :]))
    for blocks, slots, x_BHUSK in pieces:
        target_BHUSK = own_BHUSK[:, :, blocks, slots]
        if real_BUS is None:
            target_BHUSK.copy_(x_BHUSK)
        else:
            # One pass; filling a copy takes five times as long.
            real_B1US1 = real_BUS[:, None, blocks, slots, None].to(x_BHUSK)
            write(target_BHUSK, torch.mul, x_BHUSK, real_B1US1)


def _parts(batch: int, heads: int) -> Iterator[tuple[int | slice, ...]]:
    """Yield what a batched product takes at once: all heads of an example, or all examples of a
    head, whichever are fewer calls."""
    if batch < heads:
        yield from ((example,) for example in range(batch))
    else:
        yield from ((slice(None), head) for head in range(heads))


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
