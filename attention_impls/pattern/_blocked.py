"""Banded attention on the CPU: tiles of blocks, computed in place and again in the backward pass.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
U blocks of queries   S queries in a block   W keys in a block's window   T blocks in a tile

A tile is T consecutive blocks of one head: one batched product over strided views of the padded
keys, so no window is ever copied. Only the softmax of one tile exists at a time, which keeps
memory linear in N and the tile in the cache.
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
from attention_impls.contract import Position, default_scale
from attention_impls.pattern._band import Band, add_to_windows
from attention_impls.pattern._bias import stacked

TILE = 5 * 2**17
"""Logits in a tile: 32 blocks of 64 queries by 320 keys, 2.5 MiB in float32."""


def blocked_attention(
    q_BHNK: Tensor,
    k_BHMK: Tensor,
    v_BHMV: Tensor,
    band: Band,
    *,
    key_mask_BM: Tensor | None,
    position: Position | None,
    origin: int,
    dropout: float,
) -> Tensor:
    """Return softmax over the band times v, (B, H, N, V), in the dtype of q.

    Computes in float32 or better. `position` may add constants to the logits; a scheme that
    trains them is for `folded_attention`.
    """
    visible_BUW, alone_BUS = band.visible(key_mask_BM, q_BHNK.device)
    batch = len(q_BHNK)
    hidden_BUW = ~visible_BUW.expand(batch, -1, -1)
    plan = _Plan(
        band=band,
        hidden_BUW=hidden_BUW,
        touched_BU=hidden_BUW.any(dim=-1).tolist(),
        alone_BUS=alone_BUS.expand(batch, -1, -1) if bool(alone_BUS.any()) else None,
        position=position,
        origin=origin,
        dropout=dropout,
        seed=draw_seed(dropout),
    )
    out_BHNV: Tensor = _Blocked.apply(q_BHNK, k_BHMK, v_BHMV, plan)  # type: ignore[no-untyped-call]
    return out_BHNV


@dataclass(frozen=True)
class _Plan:
    """Band, masks and position scheme of a call, for the forward and the backward pass."""

    band: Band
    hidden_BUW: Tensor
    touched_BU: list[list[bool]]
    """Blocks whose window holds a hidden key: those at the ends, and those with padding."""
    alone_BUS: Tensor | None
    """Queries without a key; None where there are none."""
    position: Position | None
    origin: int
    dropout: float
    seed: int

    @property
    def together(self) -> int:
        """T, blocks in a tile."""
        return min(max(1, TILE // (self.band.size * self.band.width)), self.band.count)

    def tiles(self, batch: int, heads: int) -> Iterator[tuple[int, int, slice, Tensor | None]]:
        """Yield (example, head, blocks, what positions add (T, S, W)) in a fixed order."""
        for start in range(0, self.band.count, self.together):
            blocks = slice(start, min(start + self.together, self.band.count))
            bias_HTSW = self._bias(blocks)
            for example in range(batch):
                for head in range(heads):
                    yield example, head, blocks, None if bias_HTSW is None else bias_HTSW[head]

    def _bias(self, blocks: slice) -> Tensor | None:
        if self.position is None:
            return None
        device = self.hidden_BUW.device
        added = [
            self.position.logits(*self.band.positions(block, self.origin, device))
            for block in range(blocks.start, blocks.stop)
        ]
        return stacked(added, dim=1)

    def alone(self, example: int, blocks: slice) -> Tensor | None:
        """Return which queries of a tile see no key, (T, S, 1)."""
        if self.alone_BUS is None:
            return None
        return self.alone_BUS[example, blocks].unsqueeze(-1)


class _Weights:
    """Computes a tile's attention weights in one scratch tensor, the same in both passes."""

    def __init__(self, plan: _Plan, like: Tensor) -> None:
        band = plan.band
        self.plan = plan
        self.scratch = like.new_empty(plan.together, band.size, band.width)
        self.corners = band.outside(like.device)
        self.drops = Drops(plan.dropout, plan.seed, like.device)

    def __call__(
        self, q_TSK: Tensor, k_TKW: Tensor, example: int, blocks: slice, bias: Tensor | None
    ) -> Tensor:
        """Return (T, S, W): overwritten by the next call."""
        plan = self.plan
        logits = self.scratch[: len(q_TSK)]
        scale = default_scale(q_TSK.shape[-1])
        torch.baddbmm(logits, q_TSK, k_TKW, beta=0.0, alpha=scale, out=logits)
        if bias is not None:
            logits += bias
        for columns, outside in self.corners:
            logits[:, :, columns].masked_fill_(outside, -math.inf)
        for place, block in enumerate(range(blocks.start, blocks.stop)):
            if plan.touched_BU[example][block]:
                logits[place].masked_fill_(plan.hidden_BUW[example, block], -math.inf)
        alone_TS1 = plan.alone(example, blocks)
        if alone_TS1 is not None:
            # A query without a key looks at itself, so that the softmax stays finite; its output
            # and its gradient are dropped.
            own_TS = logits.diagonal(plan.band.lead, -2, -1)
            own_TS.masked_fill_(alone_TS1.squeeze(-1), 0.0)
        return torch.softmax(logits, dim=-1, out=logits)


class _Blocked(torch.autograd.Function):
    """The band's softmax and its gradient, tile by tile.

    Products write into scratch tensors, which spares the allocator, and which autocast leaves
    alone: it would round their float32 operands to bfloat16.
    """

    @staticmethod
    def forward(ctx: Any, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, plan: _Plan) -> Tensor:
        """Return the output; keep it with the padded inputs, but no weights."""
        band = plan.band
        batch, heads, _, width = *q_BHNK.shape[:3], v_BHMV.shape[-1]
        precise = torch.promote_types(q_BHNK.dtype, torch.float32)
        q_BHUSK = band.pad_queries(q_BHNK, precise)
        k_BHPK, v_BHPV = band.pad_keys(k_BHMK, precise), band.pad_keys(v_BHMV, precise)
        k_BHUKW, v_BHUVW = band.windows(k_BHPK), band.windows(v_BHPV)
        # Heads innermost in memory, as the output projection reads them.
        out_BNHV = k_BHPK.new_empty(batch, band.count * band.size, heads, width)
        out_BHUSV = band.blocks(out_BNHV.transpose(1, 2))
        weights = _Weights(plan, k_BHPK)
        scratch = k_BHPK.new_empty(plan.together, band.size, width)
        for example, head, blocks, bias in plan.tiles(batch, heads):
            at = (example, head, blocks)
            p_TSW = weights(q_BHUSK[at], k_BHUKW[at], example, blocks, bias)
            if plan.dropout:
                p_TSW *= weights.drops.factors(p_TSW)
            out_TSV = torch.bmm(p_TSW, v_BHUVW[at].mT, out=scratch[: len(p_TSW)])
            alone_TS1 = plan.alone(example, blocks)
            out_BHUSV[at] = out_TSV if alone_TS1 is None else out_TSV.masked_fill(alone_TS1, 0.0)
        ctx.plan, ctx.dtypes = plan, (q_BHNK.dtype, k_BHMK.dtype, v_BHMV.dtype)
        ctx.save_for_backward(q_BHUSK, k_BHPK, v_BHPV, out_BHUSV)
        return out_BNHV.transpose(1, 2)[:, :, : band.n].to(q_BHNK.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout_BHNV: Tensor) -> tuple[Tensor | None, ...]:
        """Compute each tile's weights again, then the softmax's gradient in place."""
        plan: _Plan = ctx.plan
        band = plan.band
        q_BHUSK, k_BHPK, v_BHPV, out_BHUSV = ctx.saved_tensors
        batch, heads, _, _, width = q_BHUSK.shape
        k_BHUKW, v_BHUVW = band.windows(k_BHPK), band.windows(v_BHPV)
        dout_BHUSV = band.pad_queries(dout_BHNV, k_BHPK.dtype)
        # The softmax's gradient subtracts sum_w p_w dp_w, which is out . dout.
        inner_BHUS1 = (dout_BHUSV * out_BHUSV).sum(dim=-1, keepdim=True)

        dq_BNHK = k_BHPK.new_empty(batch, band.count * band.size, heads, width)
        dq_BHUSK = band.blocks(dq_BNHK.transpose(1, 2))
        dk_BHPK, dv_BHPV = torch.zeros_like(k_BHPK), torch.zeros_like(v_BHPV)
        dk_BHUSK, dv_BHUSV = band.blocks(dk_BHPK), band.blocks(dv_BHPV)

        scale = default_scale(width)
        weights = _Weights(plan, k_BHPK)
        scratch = torch.empty_like(weights.scratch)
        scratch_TSK = k_BHPK.new_empty(plan.together, band.size, width)
        for example, head, blocks, bias in plan.tiles(batch, heads):
            at = (example, head, blocks)
            q_TSK, k_TKW, dout_TSV = q_BHUSK[at], k_BHUKW[at], dout_BHUSV[at]
            alone_TS1 = plan.alone(example, blocks)
            if alone_TS1 is not None:
                dout_TSV = dout_TSV.masked_fill(alone_TS1, 0.0)
            p_TSW = weights(q_TSK, k_TKW, example, blocks, bias)
            ds_TSW = torch.bmm(dout_TSV, v_BHUVW[at], out=scratch[: len(q_TSK)])
            kept_TSW = p_TSW
            if plan.dropout:
                keep_TSW = weights.drops.factors(p_TSW)
                kept_TSW = p_TSW * keep_TSW
                ds_TSW *= keep_TSW
            add_to_windows(dv_BHUSV[example, head], blocks, kept_TSW, dout_TSV)
            ds_TSW.sub_(inner_BHUS1[at]).mul_(p_TSW)
            dq_TSK = torch.bmm(ds_TSW, k_TKW.mT, out=scratch_TSK[: len(q_TSK)])
            dq_BHUSK[at] = dq_TSK.mul_(scale)
            add_to_windows(dk_BHUSK[example, head], blocks, ds_TSW, q_TSK, scale)

        q_dtype, k_dtype, v_dtype = ctx.dtypes
        return (
            dq_BNHK.transpose(1, 2)[:, :, : band.n].to(q_dtype),
            band.keys(dk_BHPK).to(k_dtype),
            band.keys(dv_BHPV).to(v_dtype),
            None,
        )
