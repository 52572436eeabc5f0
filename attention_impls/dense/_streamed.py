"""Softmax attention by tiles of logits, made anew in the backward pass: memory linear in N and M.

B batch   N queries   M keys   H heads   L heads of all examples, B H   K width of a query or key
head   V width of a value head   S queries of a tile   T keys of a tile

A row of tiles carries its largest logit, the sum of exponentials below it and the values weighted
by these; each tile rescales all three. The output and, for each query, the logarithm of its sum are
kept for the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attention_impls._dropout import Drops, draw_seed
from attention_impls._once import once_differentiable
from attention_impls.contract import Context, default_scale, position_ids

TILE = 2**18
"""Logits of the heads that are worked on together on a CPU: 1 MiB in float32, for the cache."""
ELSEWHERE = 256
"""Times as many on other devices, 256 MiB: more work than it takes to start it."""


def streamed_attention(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    key_mask_BM: Tensor | None,
    context: Context,
    *,
    chunks: tuple[int, int],
    dropout: float,
) -> Tensor:
    """Return softmax(q k / sqrt(K) + bias) v, (B, H, N, V), in the dtype of q.

    `chunks` are S and T; on other devices than a CPU tiles are as long as there is room for.
    Computes in float32 or better, and there multiplies in the dtype of q, which adds up so.
    `key_mask_BM` takes the place of the context's.
    """
    (batch, heads, n, _), m = q_BHNK.shape, k_BHMK.shape[2]
    adds = context.position is not None and context.position.card.acts_on == "logits"
    chunks = (min(chunks[0], max(1, n)), min(chunks[1], max(1, m)))
    tile = TILE
    if in_large_tiles(q_BHNK):
        tile *= ELSEWHERE
        chunks = (chunks[0], min(max(1, m), max(chunks[1], tile // (chunks[0] * heads))))
    plan = _Plan(
        batch=batch,
        heads=heads,
        n=n,
        m=m,
        chunks=chunks,
        together=max(1, tile // (chunks[0] * chunks[1])),
        hidden_BM=None if key_mask_BM is None else ~key_mask_BM,
        mask_BNM=context.mask_BNM,
        context=context if adds else Context(causal=context.causal),
        dropout=dropout,
        seed=draw_seed(dropout),
    )
    # Handed over by themselves, so that what positions train gets its gradient.
    trained = list(context.position.parameters()) if adds and context.position else []
    out_BHNV: Tensor = _Streamed.apply(q_BHNK, k_BHMK, v_BHMV, plan, *trained)  # type: ignore[no-untyped-call]
    return out_BHNV


def in_large_tiles(x: Tensor) -> bool:
    """Whether few large calls count more than a processor's cache."""
    return not x.is_cpu


@dataclass(frozen=True)
class _Plan:
    """Sizes, masks and position scheme of a call, for the forward and the backward pass."""

    batch: int
    heads: int
    n: int
    m: int
    chunks: tuple[int, int]
    together: int
    """Heads of one example, or whole examples of as many in all, that are worked on together."""
    hidden_BM: Tensor | None
    mask_BNM: Tensor | None
    context: Context
    dropout: float
    seed: int

    def rows(self) -> Iterator[slice]:
        """Yield the queries of each row of tiles."""
        size = self.chunks[0]
        return (slice(start, min(start + size, self.n)) for start in range(0, self.n, size))

    def columns(self, rows: slice) -> Iterator[slice]:
        """Yield the keys of each tile in a row, those that all its queries precede left out."""
        size, end = self.chunks[1], self.m
        if self.context.causal:
            end = min(end, rows.stop + self.m - self.n)
        return (slice(start, min(start + size, end)) for start in range(0, end, size))

    def groups(self) -> Iterator[slice]:
        """Yield heads that are worked on together: of one example, or all of several."""
        together = self.together
        if together >= self.heads:
            size, total = together // self.heads * self.heads, self.batch * self.heads
            yield from (slice(start, min(start + size, total)) for start in range(0, total, size))
            return
        for first in range(0, self.batch * self.heads, self.heads):
            for head in range(first, first + self.heads, together):
                yield slice(head, min(head + together, first + self.heads))

    def examples(self, group: slice) -> slice:
        """Return the examples of heads that are worked on together."""
        return slice(group.start // self.heads, -(-group.stop // self.heads))

    def bias(self, rows: slice, columns: slice, device: torch.device) -> Tensor | None:
        """Return what positions add to a tile, (H, S, T), or None; for places of each example
        (B, H, S, T)."""
        if self.context.position is None:
            return None
        rows_N, columns_M = position_ids(self.n, self.m, self.context, None, device)
        return self.context.position.logits(rows_N[..., rows], columns_M[..., columns])

    def own(self, bias_HST: Tensor, group: slice, heads: int) -> Tensor:
        """Return the part of a bias that `heads` heads of a group's examples add, a view."""
        first = group.start % self.heads
        bias_HST = bias_HST[..., first : first + heads, :, :]
        return bias_HST if bias_HST.dim() == 3 else bias_HST[self.examples(group)]


class _Tiles:
    """Makes tiles of logits, the same in both passes."""

    def __init__(self, plan: _Plan, q_LNK: Tensor, k_LMK: Tensor) -> None:
        self.plan, self.q_LNK, self.k_LMK = plan, q_LNK, k_LMK
        self.scale = default_scale(q_LNK.shape[-1])
        self.padded: dict[tuple[int, int, int], bool] = {}
        self.drops = Drops(plan.dropout, plan.seed, q_LNK.device)

    def logits(self, group: slice, rows: slice, columns: slice, bias_HST: Tensor | None) -> Tensor:
        """Return (L, S, T), -inf where a query may not see a key."""
        plan = self.plan
        q, k = self.q_LNK[group, rows], self.k_LMK[group, columns]
        logits = q.new_empty(len(q), q.shape[1], k.shape[1])
        torch.baddbmm(logits, q, k.mT, beta=0.0, alpha=self.scale, out=logits)
        # Heads of one example, or whole examples.
        shape = (-1, min(plan.heads, len(q)), *logits.shape[1:])
        if bias_HST is not None:
            logits.view(shape).add_(plan.own(bias_HST, group, shape[1]))
        hidden = self._hidden(group, columns)
        if hidden is not None:
            logits.view(shape).masked_fill_(hidden, -math.inf)
        if plan.mask_BNM is not None:
            apart_BST = ~plan.mask_BNM[plan.examples(group), rows, columns]
            logits.view(shape).masked_fill_(apart_BST.unsqueeze(1), -math.inf)
        offset = plan.m - plan.n
        if plan.context.causal and columns.stop - 1 > rows.start + offset:
            own = torch.arange(rows.start + offset, rows.stop + offset, device=q.device)
            keys = torch.arange(columns.start, columns.stop, device=q.device)
            logits.masked_fill_(keys > own.unsqueeze(-1), -math.inf)
        return logits

    def _hidden(self, group: slice, columns: slice) -> Tensor | None:
        """Return which of a tile's keys are padding, (B, 1, 1, T); None where none is.

        On a GPU nobody waits to hear whether any is.
        """
        plan = self.plan
        if plan.hidden_BM is None:
            return None
        examples = plan.examples(group)
        hidden_BT = plan.hidden_BM[examples, columns]
        if not hidden_BT.is_cpu:
            return hidden_BT[:, None, None]
        place = (examples.start, columns.start, columns.stop)
        if place not in self.padded:
            self.padded[place] = bool(hidden_BT.any())
        return hidden_BT[:, None, None] if self.padded[place] else None


class _Streamed(torch.autograd.Function):
    """Attention by tiles, and its gradient."""

    @staticmethod
    def forward(
        ctx: Any, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, plan: _Plan, *trained: Tensor
    ) -> Tensor:
        """Return the output; keep it, the inputs and one number for each query."""
        with torch.autocast(q_BHNK.device.type, enabled=False):
            q, k, v = (_flat(x) for x in (q_BHNK, k_BHMK, v_BHMV))
            out_LNV, log_LN1 = _attend(plan, q, k, v)
        ctx.plan, ctx.trained = plan, trained
        ctx.save_for_backward(q, k, v, out_LNV, log_LN1)
        ctx.dtypes = [x.dtype for x in (q_BHNK, k_BHMK, v_BHMV)]
        return out_LNV.view(plan.batch, plan.heads, *out_LNV.shape[1:]).to(q_BHNK.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout_BHNV: Tensor) -> tuple[Tensor | None, ...]:
        """Make each tile again, and the gradient of its softmax."""
        plan: _Plan = ctx.plan
        with torch.autocast(dout_BHNV.device.type, enabled=False):
            gradients, dtrained = _gradients(plan, ctx.saved_tensors, _flat(dout_BHNV), ctx.trained)
        dq, dk, dv = (
            x.view(plan.batch, plan.heads, *x.shape[1:]).to(dtype)
            for x, dtype in zip(gradients, ctx.dtypes, strict=True)
        )
        return dq, dk, dv, None, *dtrained


def _flat(x_BHNK: Tensor) -> Tensor:
    """(B, H, N, K) to (L, N, K), each head's rows side by side, in the dtype of products.

    A cache is like that, though longer than what is read of it, and is not copied.
    """
    if not in_large_tiles(x_BHNK):
        x_BHNK = x_BHNK.to(torch.promote_types(x_BHNK.dtype, torch.float32))
    side_by_side = x_BHNK.stride(2) == x_BHNK.shape[3]
    return (x_BHNK if side_by_side else x_BHNK.contiguous()).flatten(0, 1)


def _precise(x: Tensor) -> torch.dtype:
    """Return the dtype of sums: float32 or better."""
    return torch.float32 if x.dtype.itemsize < 4 else x.dtype


def _less(logits_LST: Tensor, shift: Tensor) -> Tensor:
    """Return exp(logits - shift), in the place of the logits where these are as precise."""
    if logits_LST.dtype != shift.dtype:
        return (logits_LST - shift).exp_()
    return logits_LST.sub_(shift).exp_()


def _add_product(total: Tensor, a: Tensor, b: Tensor, alpha: float = 1.0) -> None:
    """Add a @ b times alpha, multiplied in the dtype of b."""
    if total.dtype == b.dtype:
        total.baddbmm_(a, b, alpha=alpha)
    else:
        total.add_(torch.bmm(a.to(b.dtype), b), alpha=alpha)


def _attend(plan: _Plan, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return (L, N, V) and, for each query, the logarithm of its sum, (L, N, 1)."""
    tiles = _Tiles(plan, q, k)
    out_LNV = q.new_zeros(*q.shape[:2], v.shape[-1], dtype=_precise(q))
    top_LN1 = q.new_full((*q.shape[:2], 1), -math.inf, dtype=_precise(q))
    total_LN1 = torch.zeros_like(top_LN1)
    for rows in plan.rows():
        for columns in plan.columns(rows):
            bias_HST = plan.bias(rows, columns, q.device)
            for group in plan.groups():
                out, top, total = (x[group, rows] for x in (out_LNV, top_LN1, total_LN1))
                p_LST = tiles.logits(group, rows, columns, bias_HST)
                largest = torch.maximum(top, p_LST.amax(-1, keepdim=True).to(top.dtype))
                # A query that has seen no key yet: -inf from -inf would be NaN.
                shift = largest.masked_fill(largest == -math.inf, 0.0)
                p_LST = _less(p_LST, shift)
                fades = torch.exp(top - shift)
                total.mul_(fades).add_(p_LST.sum(-1, keepdim=True))
                if plan.dropout:
                    p_LST.mul_(tiles.drops.factors(p_LST))
                _add_product(out.mul_(fades), p_LST, v[group, columns])
                top.copy_(largest)
    alone_LN1 = total_LN1 == 0.0
    out_LNV.div_(total_LN1.masked_fill_(alone_LN1, 1.0))
    # Its weights are exp(logit - this): none for a query without a key.
    return out_LNV, top_LN1.add_(total_LN1.log_()).masked_fill_(alone_LN1, math.inf)


def _gradients(
    plan: _Plan, saved: tuple[Tensor, ...], dout: Tensor, trained: tuple[Tensor, ...]
) -> tuple[list[Tensor], list[Tensor | None]]:
    """Return the gradients of queries, keys and values, and of what positions train."""
    q, k, v, out, log_LN1 = saved
    tiles = _Tiles(plan, q, k)
    # The softmax's gradient subtracts sum_m p_m dp_m, which is out . dout.
    inner_LN1 = (dout * out).sum(-1, keepdim=True)
    dq, dk, dv = (torch.zeros_like(x, dtype=_precise(x)) for x in (q, k, v))
    asked = [x for x in trained if x.requires_grad]
    dasked: list[Tensor | None] = [torch.zeros_like(x) for x in asked]
    for rows in plan.rows():
        for columns in plan.columns(rows):
            with torch.set_grad_enabled(bool(asked)):
                bias_HST = plan.bias(rows, columns, q.device)
            added = None if bias_HST is None else bias_HST.detach()
            dbias = torch.zeros_like(added) if asked and added is not None else None
            for group in plan.groups():
                p_LST = tiles.logits(group, rows, columns, added)
                p_LST = _less(p_LST, log_LN1[group, rows])
                do, values = dout[group, rows], v[group, columns]
                ds_LST = torch.bmm(do, values.mT).to(p_LST.dtype)
                kept_LST = p_LST
                if plan.dropout:
                    keep_LST = tiles.drops.factors(p_LST)
                    kept_LST = p_LST * keep_LST
                    ds_LST.mul_(keep_LST)
                _add_product(dv[group, columns], kept_LST.mT, do)
                ds_LST.sub_(inner_LN1[group, rows]).mul_(p_LST)
                if dbias is not None:
                    shape = (-1, min(plan.heads, len(ds_LST)), *ds_LST.shape[1:])
                    own, ds_BHST = plan.own(dbias, group, shape[1]), ds_LST.view(shape)
                    own += ds_BHST if dbias.dim() == 4 else ds_BHST.sum(0)
                _add_product(dq[group, rows], ds_LST, k[group, columns], tiles.scale)
                _add_product(dk[group, columns], ds_LST.mT, q[group, rows], tiles.scale)
            if dbias is not None and bias_HST is not None and bias_HST.requires_grad:
                parts = torch.autograd.grad(bias_HST, asked, dbias, allow_unused=True)
                for total, part in zip(dasked, parts, strict=True):
                    if total is not None and part is not None:
                        total += part
    found = iter(dasked)
    return [dq, dk, dv], [next(found) if x.requires_grad else None for x in trained]
