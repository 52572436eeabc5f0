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
from torch.autograd.function import once_differentiable

from attention_impls.contract import Position, default_scale
from attention_impls.pattern._band import Band

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
    trains them is for `_folded`.
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
        seed=int(torch.randint(2**62, ())) if dropout else 0,
    )
    out_BHNV: Tensor = _Blocked.apply(q_BHNK, k_BHMK, v_BHMV, plan)
    return out_BHNV


@dataclass(frozen=True)
class _Plan:
    """What both passes need beside the tensors."""

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

    def tiles(self, batch: int, heads: int) -> Iterator[tuple[int, int, slice, Tensor | None]]:
        """Yield (example, head, blocks, what positions add (T, S, W)) in a fixed order."""
        band = self.band
        step = max(1, TILE // (band.size * band.width))
        for start in range(0, band.count, step):
            blocks = slice(start, min(start + step, band.count))
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
        present = [bias_HSW for bias_HSW in added if bias_HSW is not None]
        return torch.stack(present, dim=1) if present else None

    def alone(self, example: int, blocks: slice) -> Tensor | None:
        """Return which queries of a tile see no key, (T, S)."""
        if self.alone_BUS is None:
            return None
        return self.alone_BUS[example, blocks]


class _Weights:
    """Recomputes a tile's attention weights in one scratch tensor, the same in both passes."""

    def __init__(self, plan: _Plan, like: Tensor) -> None:
        band = plan.band
        self.plan = plan
        rows = min(max(1, TILE // (band.size * band.width)), band.count)
        self.scratch = like.new_empty(rows, band.size, band.width)
        # Inside a window the band cuts off two triangles; what lies between them is never masked.
        outside_SW = ~band.window_mask(like.device)
        full = torch.nonzero(~outside_SW.any(dim=0)).flatten().tolist()
        stops = (full[0], full[-1] + 1) if full else (band.width, band.width)
        self.corners = [
            (columns, outside_SW[:, columns])
            for columns in (slice(0, stops[0]), slice(stops[1], band.width))
            if columns.start < columns.stop
        ]
        self.generator = torch.Generator(like.device).manual_seed(plan.seed)

    def __call__(
        self, q_TSK: Tensor, k_TKW: Tensor, example: int, blocks: slice, bias: Tensor | None
    ) -> Tensor:
        """Return (T, S, W): overwritten by the next call."""
        plan, band = self.plan, self.plan.band
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
        alone_TS = plan.alone(example, blocks)
        if alone_TS is not None:
            # A query without a key looks at itself, so that the softmax stays finite; its output
            # and its gradient are dropped.
            logits.diagonal(band.lead, -2, -1).masked_fill_(alone_TS, 0.0)
        return torch.softmax(logits, dim=-1, out=logits)

    def keep(self, like_TSW: Tensor) -> Tensor:
        """Return the next tile's dropout factors, 0 or 1 / (1 - p)."""
        kept = 1.0 - self.plan.dropout
        return torch.empty_like(like_TSW).bernoulli_(kept, generator=self.generator).div_(kept)


class _Blocked(torch.autograd.Function):
    """The band's softmax and its gradient, tile by tile.

    Without autocast, which would round the operands of its float32 products.
    """

    @staticmethod
    @torch.autocast("cpu", enabled=False)
    def forward(ctx: Any, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, plan: _Plan) -> Tensor:
        band = plan.band
        batch, heads = q_BHNK.shape[:2]
        precise = torch.promote_types(q_BHNK.dtype, torch.float32)
        q_BHUSK = band.pad_queries(q_BHNK, precise)
        k_BHPK, v_BHPV = band.pad_keys(k_BHMK, precise), band.pad_keys(v_BHMV, precise)
        k_BHUKW, v_BHUVW = band.windows(k_BHPK), band.windows(v_BHPV)
        # Heads innermost in memory, as the output projection reads them.
        out_BNHV = q_BHUSK.new_empty(batch, band.count * band.size, heads, v_BHMV.shape[-1])
        out_BHUSV = out_BNHV.transpose(1, 2).unflatten(2, (band.count, band.size))
        weights = _Weights(plan, q_BHUSK)
        for example, head, blocks, bias in plan.tiles(batch, heads):
            at = (example, head, blocks)
            p_TSW = weights(q_BHUSK[at], k_BHUKW[at], example, blocks, bias)
            if plan.dropout:
                p_TSW *= weights.keep(p_TSW)
            out_BHUSV[at] = torch.bmm(p_TSW, v_BHUVW[at].mT)
            alone_TS = plan.alone(example, blocks)
            if alone_TS is not None:
                out_BHUSV[at].masked_fill_(alone_TS.unsqueeze(-1), 0.0)
        ctx.plan, ctx.dtypes = plan, (q_BHNK.dtype, k_BHMK.dtype, v_BHMV.dtype)
        ctx.save_for_backward(q_BHUSK, k_BHPK, v_BHPV, out_BHUSV)
        return out_BNHV.transpose(1, 2)[:, :, : band.n].to(q_BHNK.dtype)

    @staticmethod
    @once_differentiable
    @torch.autocast("cpu", enabled=False)
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        plan: _Plan = ctx.plan
        band = plan.band
        q_BHUSK, k_BHPK, v_BHPV, out_BHUSV = ctx.saved_tensors
        batch, heads, _, _, width = q_BHUSK.shape
        k_BHUKW, v_BHUVW = band.windows(k_BHPK), band.windows(v_BHPV)
        do_BHUSV = band.pad_queries(gradients[0], q_BHUSK.dtype)
        # sum_w p_w dp_w, which the softmax's gradient subtracts, is out . dout.
        inner_BHUS = (do_BHUSV * out_BHUSV).sum(dim=-1)

        dq_BNHK = q_BHUSK.new_empty(batch, band.count * band.size, heads, width)
        dq_BHUSK = dq_BNHK.transpose(1, 2).unflatten(2, (band.count, band.size))
        dk_BHPK, dv_BHPV = torch.zeros_like(k_BHPK), torch.zeros_like(v_BHPV)
        dk_BHUSK, dv_BHUSV = (x.unflatten(2, (-1, band.size)) for x in (dk_BHPK, dv_BHPV))

        scale = default_scale(width)
        weights = _Weights(plan, q_BHUSK)
        scratch = torch.empty_like(weights.scratch)
        for example, head, blocks, bias in plan.tiles(batch, heads):
            at = (example, head, blocks)
            q_TSK, k_TKW, do_TSV = q_BHUSK[at], k_BHUKW[at], do_BHUSV[at]
            alone_TS = plan.alone(example, blocks)
            if alone_TS is not None:
                do_TSV = do_TSV.masked_fill(alone_TS.unsqueeze(-1), 0.0)
            p_TSW = weights(q_TSK, k_TKW, example, blocks, bias)
            ds_TSW = torch.bmm(do_TSV, v_BHUVW[at], out=scratch[: len(q_TSK)])
            if plan.dropout:
                keep_TSW = weights.keep(p_TSW)
                _add_to_keys(dv_BHUSV[example, head], blocks, band, p_TSW * keep_TSW, do_TSV)
                ds_TSW *= keep_TSW
            else:
                _add_to_keys(dv_BHUSV[example, head], blocks, band, p_TSW, do_TSV)
            ds_TSW.sub_(inner_BHUS[at].unsqueeze(-1)).mul_(p_TSW)
            dq_BHUSK[at] = torch.bmm(ds_TSW, k_TKW.mT).mul_(scale)
            _add_to_keys(dk_BHUSK[example, head], blocks, band, ds_TSW, q_TSK, scale)

        q_dtype, k_dtype, v_dtype = ctx.dtypes
        return (
            dq_BNHK.transpose(1, 2)[:, :, : band.n].to(q_dtype),
            band.keys(dk_BHPK).to(k_dtype),
            band.keys(dv_BHPV).to(v_dtype),
            None,
        )


def _add_to_keys(
    total_USK: Tensor, blocks: slice, band: Band, a_TSW: Tensor, x_TSK: Tensor, scale: float = 1.0
) -> None:
    """Add a^T x of each block to the keys of its window.

    Windows overlap, so their blocks of keys are taken one after the other: shifted by a block,
    no two windows meet, and the product adds into the total by itself.
    """
    for shift in range(band.before + 1 + band.after):
        columns = slice(shift * band.size, (shift + 1) * band.size)
        keys_TSK = total_USK[blocks.start + shift : blocks.stop + shift]
        keys_TSK.baddbmm_(a_TSW[:, :, columns].mT, x_TSK, alpha=scale)
