"""One softmax over keys that come in parts: each part by tiles, merged by their log sums.

B batch   N queries   H heads   K width of a query or key head   V width of a value head
U blocks of queries   S queries in a block   P keys as laid out   W keys that a block reads
T blocks of a tile

A part is a layout (which keys each block of queries reads) and a rule (which of those pairs may
interact). It gives a normalised output and the logarithm of its denominator; `merge` joins parts
that share their queries. No key may be in two of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attention_impls._dropout import Drops, draw_seed
from attention_impls._once import once_differentiable
from attention_impls.contract import Position, default_scale
from attention_impls.pattern._layouts import Layout, Tile

TILE = 2**18
"""Logits in a tile: 1 MiB in float32, which stays in the cache."""

TILE_COST = 2**14
"""Pairs in tiles that take as long as the calls for one tile of one head do, forward and backward
(measured on a CPU: 0.2 to 0.3 ms beside 15 ns a pair)."""

WRITTEN_COST = 1.3
"""Pairs in tiles that take as long as one among weights written out, or as one number that is
copied from a key to a block."""

DENSE_ADVANTAGE = 2
"""Pairs that one fused dense call works off in the time of one pair in tiles (1.3 at heads of 64,
2.5 at heads of 16)."""

DENSE_ADVANTAGE_ON_GPU = 2.5
"""The same there, where both are fused calls under a mask, but in parts also copy the keys that a
block reads (reckoned from bytes and operations in bfloat16 on an H200, not yet measured: a copied
key takes as long as about a hundred pairs, and serves 64 to 256 queries)."""

DENSE_DROPPING = 0.5
"""Share of `DENSE_ADVANTAGE` left on a CPU where weights are dropped: the call is then no longer
fused (1.0 to 1.8 instead of 2, least where a batch's weights fill no cache)."""

DENSE_MOST = 2**21
"""Pairs of a head beyond which nothing is computed densely, however near the pattern is to all of
them: a mask of all pairs grows with the square of the length."""

Hidden = list[tuple[slice, Tensor]]
"""Columns of a tile, and which of its pairs there may not interact: broadcasts to (T, S, W')."""


Rule = Callable[[slice], Hidden]
"""Pairs that may not interact, for some blocks; on the keys' device."""


def permits_all(blocks: slice) -> Hidden:
    """The rule that hides nothing."""
    return []


def alike(hidden: Hidden) -> Rule:
    """Return the rule that hides the same pairs in all blocks."""
    return lambda blocks: hidden


@dataclass(frozen=True)
class Part:
    """Layout, mask and rule of one part of the keys."""

    layout: Layout
    real_BP: Tensor
    """Which keys are real, boolean; B is 1 where all examples agree."""
    rule: Rule = permits_all
    bias: Callable[[slice], Tensor | None] | None = None
    """Bias of the position scheme on the logits of some blocks, (H, T, S, W)."""
    dropout: float = 0.0


def folds(like: Tensor) -> bool:
    """Whether blocks of queries become examples of one fused call: on a GPU, where few large calls
    count, and when a compiler traces."""
    return torch.compiler.is_compiling() or like.device.type != "cpu"


def needs_autograd(q_BHNK: Tensor, position: Position | None) -> bool:
    """Whether to leave the gradient to autograd: wherever blocks are folded, and when a position
    scheme trains what it adds to the logits."""
    return trains(position) or folds(q_BHNK)


def trains(position: Position | None) -> bool:
    """Whether what a scheme adds to the logits is trained."""
    return position is not None and any(p.requires_grad for p in position.parameters())


def dense_is_cheaper(
    everything: int,
    pairs: int,
    *,
    parts: int,
    device: torch.device,
    autograd: bool,
    reached: bool,
    dropout: float,
) -> bool:
    """Whether all pairs of a head in one fused call cost less than some of them in parts.

    On a CPU each part takes a tile at least, however short the input. `reached` says that the
    input is no longer than the pattern reaches, which bounds the mask by itself.
    """
    if everything > DENSE_MOST and not reached:
        return False
    if device.type != "cpu":
        return everything <= DENSE_ADVANTAGE_ON_GPU * pairs
    if autograd:
        return everything <= DENSE_ADVANTAGE * pairs
    advantage = DENSE_ADVANTAGE * DENSE_DROPPING if dropout else DENSE_ADVANTAGE
    return everything <= advantage * (pairs + parts * TILE_COST)


def attend_part(
    q_BHUSK: Tensor, k_BHPK: Tensor, v_BHPV: Tensor, part: Part, *, autograd: bool
) -> tuple[Tensor, Tensor]:
    """Return softmax over the part's keys times v, (B, H, U, S, V), and its log sum, (B, H, U, S).

    Both in float32 or better. A query without a key gives zero, and minus infinity. With `autograd`
    the weights are written out, and where that costs less than the calls that tiles take; else
    computed by tiles, and again in the backward pass.
    """
    precise = torch.promote_types(q_BHUSK.dtype, torch.float32)
    q, k, v = (x.to(precise) for x in (q_BHUSK, k_BHPK, v_BHPV))
    with torch.autocast(q.device.type, enabled=False):
        if autograd or _written_is_cheaper(q, part.layout):
            return _written_out(q, k, v, part)
        seed = draw_seed(part.dropout)
        out_BHUSV, lse_BHUS = _Tiled.apply(q, k, v, part, seed)  # type: ignore[no-untyped-call]
        return out_BHUSV, lse_BHUS


def _written_is_cheaper(q_BHUSK: Tensor, layout: Layout) -> bool:
    """Whether tiles of so few pairs take longer to call than to compute; by head, as all do."""
    size, width = q_BHUSK.shape[-2:]
    read = layout.count * layout.width
    tiles = -(-layout.count // _together(layout, size))
    return WRITTEN_COST * read * (size + width) <= read * size + tiles * TILE_COST


def _together(layout: Layout, size: int) -> int:
    """Return T."""
    return min(max(1, TILE // (size * layout.width)), layout.count)


def merge(parts: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Return the softmax over all parts' keys, (..., V), from their outputs and log sums (...)."""
    if len(parts) == 1:
        return parts[0][0]
    lse = torch.stack([part[1] for part in parts])
    top = lse.detach().amax(dim=0)
    shares = torch.exp(lse - top.masked_fill(top == -math.inf, 0.0))
    total = shares.sum(dim=0).clamp(min=1.0)  # zero where there is no key at all
    joined = sum(
        share.unsqueeze(-1) * out for share, (out, _) in zip(shares / total, parts, strict=True)
    )
    assert isinstance(joined, Tensor)
    return joined


def _written_out(
    q_BHUSK: Tensor, k_BHPK: Tensor, v_BHPV: Tensor, part: Part
) -> tuple[Tensor, Tensor]:
    """The same, by one tensor of weights, (B, H, U, S, W)."""
    layout, everything = part.layout, slice(0, part.layout.count)
    logits = q_BHUSK @ layout.windows(k_BHPK).mT * default_scale(q_BHUSK.shape[-1])
    bias_HUSW = None if part.bias is None else part.bias(everything)
    if bias_HUSW is not None:
        logits = logits + bias_HUSW
    real_BHP1 = part.real_BP[:, None, :, None]
    if layout.per_head:
        real_BHP1 = real_BHP1.expand(len(q_BHUSK), q_BHUSK.shape[1], -1, -1)
    hidden = ~layout.windows(real_BHP1).mT
    for columns, mask in part.rule(everything):
        wide = torch.zeros_like(logits[0, 0], dtype=torch.bool)
        wide[:, :, columns] = mask
        hidden = hidden | wide
    logits = logits.masked_fill(hidden, -math.inf)
    top = logits.detach().amax(dim=-1, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0.0)
    weights = torch.exp(logits - top)
    total = weights.sum(dim=-1, keepdim=True)
    none = total == 0.0
    lse = (top + total.masked_fill(none, 1.0).log()).masked_fill(none, -math.inf).squeeze(-1)
    weights = weights / total.masked_fill(none, 1.0)
    weights = torch.nn.functional.dropout(weights, part.dropout, training=part.dropout > 0.0)
    return weights @ layout.windows(v_BHPV), lse


class _Tiles:
    """Walks over tiles and computes their logits in one scratch tensor, the same in both passes."""

    def __init__(self, q_BHUSK: Tensor, k_BHPK: Tensor, part: Part, seed: int) -> None:
        self.part, self.q_BHUSK, self.k_BHPK = part, q_BHUSK, k_BHPK
        layout, size = part.layout, q_BHUSK.shape[3]
        self.together = _together(layout, size)
        self.scratch = q_BHUSK.new_empty(self.together * size * layout.width)
        self.scale = default_scale(q_BHUSK.shape[-1])
        self.drops = Drops(part.dropout, seed, q_BHUSK.device)

    def __iter__(self) -> Iterator[tuple[Tile, Tensor, Tensor]]:
        """Yield (tile, its keys (T, W, K), its logits (T, S, W)): the logits are overwritten by the
        next."""
        batch, heads, count, size, _ = self.q_BHUSK.shape
        part, layout = self.part, self.part.layout
        for start in range(0, count, self.together):
            blocks = slice(start, min(start + self.together, count))
            rule = part.rule(blocks)
            bias_HTSW = None if part.bias is None else part.bias(blocks)
            for example in range(batch):
                hidden_TW = None
                for head in range(heads):
                    at = Tile(example, head, blocks)
                    if head == 0 or layout.per_head:
                        hidden_TW = self._hidden(at)
                    k_TWK = layout.tile(self.k_BHPK[example, head], at)
                    logits = self.shaped(self.scratch, len(k_TWK), size, k_TWK.shape[1])
                    q_TSK = self.q_BHUSK[at]
                    torch.baddbmm(logits, q_TSK, k_TWK.mT, beta=0.0, alpha=self.scale, out=logits)
                    if bias_HTSW is not None:
                        logits += bias_HTSW[head]
                    for columns, mask in rule:
                        logits[:, :, columns].masked_fill_(mask, -math.inf)
                    if hidden_TW is not None:
                        logits.masked_fill_(hidden_TW.unsqueeze(1), -math.inf)
                    yield at, k_TWK, logits

    def _hidden(self, at: Tile) -> Tensor | None:
        """Return which columns hold no real key, (T, W), or None where all do."""
        real_P = self.part.real_BP[at.example % len(self.part.real_BP)]
        real_TW = self.part.layout.tile(real_P.unsqueeze(-1), at)[:, :, 0]
        return None if bool(real_TW.all()) else ~real_TW

    @staticmethod
    def shaped(scratch: Tensor, *shape: int) -> Tensor:
        """Return the beginning of a flat tensor in a shape."""
        return scratch[: math.prod(shape)].view(shape)


class _Tiled(torch.autograd.Function):
    """A part's softmax, its log sum, and the gradient of both, tile by tile."""

    @staticmethod
    def forward(
        ctx: Any, q_BHUSK: Tensor, k_BHPK: Tensor, v_BHPV: Tensor, part: Part, seed: int
    ) -> tuple[Tensor, Tensor]:
        """Keep the output and the log sum with the inputs, but no weights."""
        batch, heads, count, size, _ = q_BHUSK.shape
        # Heads innermost in memory, as the output projection reads them.
        out_BHUSV = q_BHUSK.new_empty(batch, count, size, heads, v_BHPV.shape[-1])
        out_BHUSV = out_BHUSV.movedim(3, 1)
        lse_BHUS = q_BHUSK.new_empty(batch, heads, count, size)
        tiles = _Tiles(q_BHUSK, k_BHPK, part, seed)
        for at, _, p_TSW in tiles:
            top_TS1 = p_TSW.amax(dim=-1, keepdim=True)
            top_TS1.masked_fill_(top_TS1 == -math.inf, 0.0)
            p_TSW.sub_(top_TS1).exp_()
            total_TS1 = p_TSW.sum(dim=-1, keepdim=True)
            lse_BHUS[at] = total_TS1.log().add_(top_TS1).squeeze(-1)
            if part.dropout:
                p_TSW *= tiles.drops.factors(p_TSW)
            v_TWV = part.layout.tile(v_BHPV[at.example, at.head], at)
            # At least 1 where there is a key: the greatest weight is exp(0).
            out_BHUSV[at] = torch.bmm(p_TSW, v_TWV).div_(total_TS1.clamp_(min=1.0))
        ctx.part, ctx.seed = part, seed
        ctx.save_for_backward(q_BHUSK, k_BHPK, v_BHPV, out_BHUSV, lse_BHUS)
        return out_BHUSV, lse_BHUS

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout_BHUSV: Tensor, dlse_BHUS: Tensor) -> tuple[Tensor | None, ...]:
        """Compute each tile's weights again, then the softmax's gradient in place."""
        part: Part = ctx.part
        layout = part.layout
        q_BHUSK, k_BHPK, v_BHPV, out_BHUSV, lse_BHUS = ctx.saved_tensors
        # The softmax's gradient subtracts sum_w p_w dp_w, which is out . dout.
        inner_BHUS1 = (dout_BHUSV * out_BHUSV).sum(dim=-1).sub_(dlse_BHUS).unsqueeze(-1)
        # exp(-inf - inf) is the zero weight of a query without a key.
        lse_BHUS1 = lse_BHUS.masked_fill(lse_BHUS == -math.inf, math.inf).unsqueeze(-1)
        dq_BHUSK = torch.empty_like(q_BHUSK)
        dk_BHPK, dv_BHPV = (
            torch.zeros_like(x, memory_format=torch.contiguous_format) for x in (k_BHPK, v_BHPV)
        )
        tiles = _Tiles(q_BHUSK, k_BHPK, part, ctx.seed)
        scratch = torch.empty_like(tiles.scratch)
        with torch.autocast(q_BHUSK.device.type, enabled=False):
            for at, k_TWK, p_TSW in tiles:
                head = (at.example, at.head)
                p_TSW.sub_(lse_BHUS1[at]).exp_()
                dout_TSV, v_TWV = dout_BHUSV[at], layout.tile(v_BHPV[head], at)
                ds_TSW = tiles.shaped(scratch, *p_TSW.shape)
                torch.bmm(dout_TSV, v_TWV.mT, out=ds_TSW)
                kept_TSW = p_TSW
                if part.dropout:
                    keep_TSW = tiles.drops.factors(p_TSW)
                    kept_TSW = p_TSW * keep_TSW
                    ds_TSW *= keep_TSW
                layout.add_product(dv_BHPV[head], at, kept_TSW, dout_TSV)
                ds_TSW.sub_(inner_BHUS1[at]).mul_(p_TSW)
                dq_BHUSK[at] = torch.bmm(ds_TSW, k_TWK).mul_(tiles.scale)
                q_TSK = q_BHUSK[at]
                layout.add_product(dk_BHPK[head], at, ds_TSW, q_TSK, tiles.scale)
        return dq_BHUSK, dk_BHPK, dv_BHPV, None, None
