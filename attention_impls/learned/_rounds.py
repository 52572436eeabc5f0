"""Attention in sorted chunks on the CPU: tiles of chunks, in place and again in the backward pass.

B batch   N positions   H heads   K width of a query or key head   V width of a value head
R rounds   U chunks   S positions in a chunk   W keys that a chunk reads   T chunks in a tile

All rounds share one softmax: a pair counts as often as rounds see it. Heads are taken one by one
and their rounds one after the other, merged by their largest logits; only the weights of one tile
exist at a time. A sort is undone by gathering with the inverse permutation, which is much faster
than scattering.
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
from attention_impls.pattern._band import add_to_windows

TILE = 2**18
"""Logits in a tile: 1 MiB in float32, which stays in the cache."""


@dataclass(frozen=True)
class Rounds:
    """Buckets, masks and constants of a call, for the forward and the backward pass."""

    buckets_BHRN: Tensor
    size: int
    """S."""
    scale: float
    """Factor of q . k in a logit."""
    own: float
    """Taken off the logit of a position with itself."""
    causal: bool
    key_mask_BN: Tensor | None
    dropout: float


def attend_rounds(q_BHNK: Tensor, k_BHNK: Tensor, v_BHNV: Tensor, rounds: Rounds) -> Tensor:
    """Return softmax over the keys of all rounds times v, (B, H, N, V); zero without a key."""
    seed = draw_seed(rounds.dropout)
    out: Tensor = _InChunks.apply(q_BHNK, k_BHNK, v_BHNV, rounds, seed)  # type: ignore[no-untyped-call]
    return out


class _Round:
    """One round of one head: what is sorted, and the logits of its tiles."""

    def __init__(self, rounds: Rounds, example: int, head: int, number: int, n: int) -> None:
        size = rounds.size
        self.rounds, self.n = rounds, n
        self.count = -(-n // size)
        self.before = min(1, self.count - 1)
        """Chunks that a chunk reads before its own: a single one would read itself twice."""
        self.width = (self.before + 1) * size
        self.order_N = rounds.buckets_BHRN[example, head, number].argsort(stable=True)
        self.back_N = torch.empty_like(self.order_N)
        self.back_N[self.order_N] = torch.arange(n, device=self.order_N.device)
        real_N = None if rounds.key_mask_BN is None else rounds.key_mask_BN[example]
        self.hidden_UW: Tensor | None = None
        if real_N is not None or self.count * size > n:
            real_N = torch.ones_like(self.order_N, dtype=torch.bool) if real_N is None else real_N
            self.hidden_UW = ~self.windows(self.keys(real_N.unsqueeze(-1))).squeeze(-1)
        self.places: tuple[Tensor, Tensor] | None = None
        """Where causal: the places of queries, (U, S, 1), and of the keys they read, (U, W, 1)."""
        if rounds.causal:
            places_N1 = torch.arange(n, device=self.order_N.device).unsqueeze(-1)
            self.places = self.queries(places_N1), self.windows(self.keys(places_N1))

    def queries(self, x_NK: Tensor) -> Tensor:
        """Return (U, S, K), sorted, zero behind the last."""
        sorted_ = x_NK.new_empty(self.count * self.rounds.size, x_NK.shape[-1])
        torch.index_select(x_NK, 0, self.order_N, out=sorted_[: self.n])
        sorted_[self.n :] = 0
        return sorted_.view(self.count, self.rounds.size, -1)

    def keys(self, x_NK: Tensor) -> Tensor:
        """Return ([1 +] U, S, K): the last chunk, which the first reads, then all of them."""
        ring = x_NK.new_empty((self.before + self.count) * self.rounds.size, x_NK.shape[-1])
        start = self.before * self.rounds.size
        torch.index_select(x_NK, 0, self.order_N, out=ring[start : start + self.n])
        ring[start + self.n :] = 0
        ring[:start] = ring[len(ring) - start :]
        return ring.view(self.before + self.count, self.rounds.size, -1)

    def windows(self, ring: Tensor) -> Tensor:
        """Return the keys that each chunk reads, (U, W, K), a view."""
        size, inner = ring.shape[1:]
        return ring.as_strided((self.count, self.width, inner), (size * inner, inner, 1))

    def unsorted(self, x_USV: Tensor) -> Tensor:
        """Return (N, V), put back."""
        return x_USV.flatten(0, 1).index_select(0, self.back_N)

    def from_keys(self, ring: Tensor) -> Tensor:
        """Return (N, K) of what was added to the ring's places, put back."""
        if self.before:
            ring[-1] += ring[0]
        return self.unsorted(ring[self.before :])

    def tiles(self) -> Iterator[slice]:
        """Yield the chunks of each tile."""
        step = max(1, TILE // (self.rounds.size * self.width))
        for start in range(0, self.count, step):
            yield slice(start, min(start + step, self.count))

    def logits(self, q_TSK: Tensor, k_TWK: Tensor, chunks: slice, scratch: Tensor) -> Tensor:
        """Return (T, S, W), minus infinity where hidden; overwritten by the next."""
        size = self.rounds.size
        logits = scratch[: q_TSK.shape[0] * size * self.width].view(-1, size, self.width)
        torch.baddbmm(logits, q_TSK, k_TWK.mT, beta=0.0, alpha=self.rounds.scale, out=logits)
        # In its own chunk a position stands in the same place as key and as query.
        logits[:, :, -size:].diagonal(dim1=-2, dim2=-1).sub_(self.rounds.own)
        if self.hidden_UW is not None:
            hidden_TW = self.hidden_UW[chunks]
            if bool(hidden_TW.any()):
                logits.masked_fill_(hidden_TW.unsqueeze(1), -math.inf)
        if self.places is not None:
            rows_US1, columns_UW1 = self.places
            logits.masked_fill_(columns_UW1[chunks].mT > rows_US1[chunks], -math.inf)
        return logits

    def scratch(self, like: Tensor) -> Tensor:
        """Return room for the logits of any tile."""
        pairs = self.rounds.size * self.width
        return like.new_empty(min(self.count, max(1, TILE // pairs)) * pairs)


class _InChunks(torch.autograd.Function):
    """The softmax of all rounds and its gradient."""

    @staticmethod
    def forward(
        ctx: Any, q_BHNK: Tensor, k_BHNK: Tensor, v_BHNV: Tensor, rounds: Rounds, seed: int
    ) -> Tensor:
        """Keep the inputs, the output and each row's largest logit and denominator."""
        batch, heads, n, width = *q_BHNK.shape[:3], v_BHNV.shape[-1]
        # Heads innermost in memory, as the output projection reads them.
        out_BHNV = q_BHNK.new_empty(batch, n, heads, width).transpose(1, 2)
        top_BHN1, inverse_BHN1 = (q_BHNK.new_empty(batch, heads, n, 1) for _ in range(2))
        drops = Drops(rounds.dropout, seed, q_BHNK.device)
        for example in range(batch):
            for head in range(heads):
                at = (example, head)
                out_NV = q_BHNK.new_zeros(n, width)
                top_N1 = q_BHNK.new_full((n, 1), -math.inf)
                total_N1 = q_BHNK.new_zeros(n, 1)
                for number in range(rounds.buckets_BHRN.shape[2]):
                    one = _Round(rounds, example, head, number, n)
                    q_USK = one.queries(q_BHNK[at])
                    k_UWK = one.windows(one.keys(k_BHNK[at]))
                    v_UWV = one.windows(one.keys(v_BHNV[at]))
                    read_USV = q_USK.new_empty(one.count, rounds.size, width)
                    largest_US1, sum_US1 = (
                        q_USK.new_empty(one.count, rounds.size, 1) for _ in range(2)
                    )
                    scratch = one.scratch(q_USK)
                    for chunks in one.tiles():
                        p_TSW = one.logits(q_USK[chunks], k_UWK[chunks], chunks, scratch)
                        largest_TS1 = p_TSW.amax(dim=-1, keepdim=True)
                        largest_US1[chunks] = largest_TS1
                        p_TSW.sub_(_finite(largest_TS1)).exp_()
                        torch.sum(p_TSW, dim=-1, keepdim=True, out=sum_US1[chunks])
                        if rounds.dropout:
                            p_TSW *= drops.factors(p_TSW)
                        torch.bmm(p_TSW, v_UWV[chunks], out=read_USV[chunks])
                    largest_N1 = one.unsorted(largest_US1)
                    higher_N1 = torch.maximum(top_N1, largest_N1)
                    old_N1 = (top_N1 - _finite(higher_N1)).exp_()
                    new_N1 = (largest_N1 - _finite(higher_N1)).exp_()
                    out_NV.mul_(old_N1).addcmul_(one.unsorted(read_USV), new_N1)
                    total_N1.mul_(old_N1).addcmul_(one.unsorted(sum_US1), new_N1)
                    top_N1 = higher_N1
                none_N1 = total_N1 == 0.0
                inverse_N1 = total_N1.masked_fill_(none_N1, 1.0).reciprocal_()
                inverse_N1.masked_fill_(none_N1, 0.0)
                torch.mul(out_NV, inverse_N1, out=out_BHNV[at])
                top_BHN1[at], inverse_BHN1[at] = _finite(top_N1), inverse_N1
        ctx.rounds, ctx.seed = rounds, seed
        ctx.save_for_backward(q_BHNK, k_BHNK, v_BHNV, out_BHNV, top_BHN1, inverse_BHN1)
        return out_BHNV

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout_BHNV: Tensor) -> tuple[Tensor | None, ...]:
        """Compute each tile's weights again, then the softmax's gradient in place."""
        with torch.autocast(dout_BHNV.device.type, enabled=False):
            return _gradients(ctx, dout_BHNV)


def _gradients(ctx: Any, dout_BHNV: Tensor) -> tuple[Tensor | None, ...]:
    """Walk as the forward pass does."""
    q_BHNK, k_BHNK, v_BHNV, out_BHNV, top_BHN1, inverse_BHN1 = ctx.saved_tensors
    rounds: Rounds = ctx.rounds
    batch, heads, n, _ = q_BHNK.shape
    scale = rounds.scale
    dq, dk, dv = (
        x.new_empty(batch, n, heads, x.shape[-1]).transpose(1, 2) for x in (q_BHNK, k_BHNK, v_BHNV)
    )
    drops = Drops(rounds.dropout, ctx.seed, q_BHNK.device)
    for example in range(batch):
        for head in range(heads):
            at = (example, head)
            dout_NV = dout_BHNV[at]
            # The softmax's gradient subtracts sum_w p_w dp_w, which is out . dout.
            inner_N1 = (out_BHNV[at] * dout_NV).sum(dim=-1, keepdim=True)
            rows_N3 = torch.cat([top_BHN1[at], inverse_BHN1[at], inner_N1], dim=-1)
            dq_NK, dk_NK, dv_NV = (x.new_zeros(n, x.shape[-1]) for x in (dq, dk, dv))
            for number in range(rounds.buckets_BHRN.shape[2]):
                one = _Round(rounds, example, head, number, n)
                q_USK, dout_USV = one.queries(q_BHNK[at]), one.queries(dout_NV)
                rows_US3 = one.queries(rows_N3)
                top_US1, inverse_US1, inner_US1 = (rows_US3[..., i : i + 1] for i in range(3))
                k_UWK = one.windows(one.keys(k_BHNK[at]))
                v_UWV = one.windows(one.keys(v_BHNV[at]))
                shape = (one.before + one.count, rounds.size)
                dk_ring = q_USK.new_zeros(*shape, q_USK.shape[-1])
                dv_ring = q_USK.new_zeros(*shape, dout_USV.shape[-1])
                dq_USK = torch.empty_like(q_USK)
                scratch, other = one.scratch(q_USK), one.scratch(q_USK)
                for chunks in one.tiles():
                    q_TSK, dout_TSV = q_USK[chunks], dout_USV[chunks]
                    p_TSW = one.logits(q_TSK, k_UWK[chunks], chunks, scratch)
                    p_TSW.sub_(top_US1[chunks]).exp_().mul_(inverse_US1[chunks])
                    ds_TSW = other[: p_TSW.numel()].view_as(p_TSW)
                    torch.bmm(dout_TSV, v_UWV[chunks].mT, out=ds_TSW)
                    kept_TSW = p_TSW
                    if rounds.dropout:
                        keep_TSW = drops.factors(p_TSW)
                        kept_TSW = p_TSW * keep_TSW
                        ds_TSW *= keep_TSW
                    add_to_windows(dv_ring, chunks, kept_TSW, dout_TSV)
                    ds_TSW.sub_(inner_US1[chunks]).mul_(p_TSW)
                    torch.bmm(ds_TSW, k_UWK[chunks], out=dq_USK[chunks])
                    add_to_windows(dk_ring, chunks, ds_TSW, q_TSK, scale)
                dq_NK.add_(one.unsorted(dq_USK), alpha=scale)
                dk_NK += one.from_keys(dk_ring)
                dv_NV += one.from_keys(dv_ring)
            dq[at], dk[at], dv[at] = dq_NK, dk_NK, dv_NV
    return dq, dk, dv, None, None


def _finite(x: Tensor) -> Tensor:
    """Put zero for minus infinity."""
    return x.masked_fill(x == -math.inf, 0.0)
