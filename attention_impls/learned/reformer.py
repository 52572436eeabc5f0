"""Reformer: attention among positions that hash alike, in sorted chunks.

B batch   N positions   H heads   K width of a query or key head   V width of a value head
R rounds   T columns drawn   S positions in a chunk
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls._draws import seeded
from attention_impls._once import refuse_second_derivative
from attention_impls.contract import (
    Attention,
    Context,
    Dims,
    Exact,
    Heads,
    MechanismConfig,
    default_scale,
    split_heads,
)
from attention_impls.dense._fused import fused_softmax
from attention_impls.dense._pairs import permitted_pairs
from attention_impls.learned._chunks import SELF, sorted_attention
from attention_impls.learned._merged import attend_merged, takes_merged
from attention_impls.learned._rounds import Rounds, attend_rounds
from attention_impls.pattern._parts import needs_autograd
from lra.core.cards import AttentionCard, Capabilities

LONG = 2**16
"""Logits of a head and round from which the CPU takes them one by one."""

COLUMNS = 64
"""Random directions per factor of a hash: up to 128 buckets with one factor, 16384 with two."""

ARENA_CHUNKS = 10
"""Number of chunks in the arena's code, and of its buckets, at every length."""


class ReformerConfig(MechanismConfig, frozen=True):
    """Hyper-parameters of the Reformer's attention."""

    chunk: Annotated[int, msgspec.Meta(ge=1)] = 64
    """S, positions in a sorted chunk; there are 2 N / S buckets."""
    rounds: Annotated[int, msgspec.Meta(ge=1)] = 4
    """R, independent hashes, whose attention is merged."""
    parity: Literal["none", "lra2021"] = "none"
    """lra2021: the arena's, to be asked for with rounds=1. 10 buckets and 10 chunks of n // 10 + 1,
    whatever `chunk`, so time is quadratic; keys are the queries as they are; logits are multiplied
    by sqrt(K); a position reads itself like any other; no dropout on weights. Unlike
    there, padding is masked and behind all else, draws follow the seed, causal masks are honoured,
    there is a projection of outputs, and heads and positions are not mixed up before it."""


class Reformer(Attention):
    """softmax(q k^T) v with k = q / |q|, over what shares or neighbours a sorted chunk.

    In O(R N (S d + log N)) time. Each round hashes by the nearest of random directions and their
    opposites, sorts by bucket and then by place, and cuts chunks; a chunk reads itself and the one
    before it, in a ring. Rounds are merged by their normalisers, so that a pair counts as often as
    rounds see it. Equal to softmax over shared queries and keys up to two chunks, where every round
    sees every pair once: computed as such, without a sort, and with one draw of dropout.

    Keys have length sqrt(K) in the authors' code before it divides by that, which leaves unit keys;
    the paper's formulas, which drop the scale, could be read as dividing those again. The sets are
    the code's too; the paper's formulas also mask keys of other buckets, and take the logarithm of
    how often a pair is seen off it.

    Causal masks the future by place, but which earlier keys are seen depends on later inputs, which
    move the borders of chunks: values-only. Queries are keys, so the projection to keys is unused
    and there is no second sequence. Padding goes into a bucket of its own, behind all others.

    Ours: directions are drawn once per layer, where the authors' code draws anew in each call; the
    ring is closed in each round, where theirs runs on from one round into the next; hashes are
    computed in float32 or better; long inputs on the CPU go one head and one round at a time, and
    again for the gradient (`_rounds`), and on a GPU all heads and rounds go at once (`_merged`).
    The reversible layers and chunked feed-forward of the paper are no part of an attention.
    """

    card = AttentionCard(
        title="Reformer (LSH attention)",
        paper="Kitaev et al., Reformer: The Efficient Transformer, ICLR 2020, arXiv:2001.04451",
        year=2020,
        time="O(r n (c d + log n))",
        memory="O(n (d + r)); O(r n c) on a GPU",
        weights="convex",
        capabilities=Capabilities(
            bidirectional=True,
            causal="values-only",
            padding="length",
            stochastic=True,
        ),
        softmax="of its own",
    )
    Config = ReformerConfig
    config: ReformerConfig
    trials = (
        ReformerConfig(chunk=4, rounds=3),
        ReformerConfig(chunk=5, rounds=1),
        ReformerConfig(rounds=1, parity="lra2021"),
    )
    unused = ("key",)
    directions_HRK2T: Tensor

    def __init__(
        self,
        dims: Dims,
        config: MechanismConfig | None = None,
        *,
        layer_index: int = 0,
        shared: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dims, config, layer_index=layer_index, shared=shared, seed=seed)
        shape = (dims.heads, self.config.rounds, dims.head_width, 2, COLUMNS)
        drawn = torch.randn(shape, generator=seeded(self.seed, self.layer_index))
        self.register_buffer("directions_HRK2T", drawn)

    @property
    def borders(self) -> tuple[int, ...]:
        """The lengths of one chunk, of two, up to which every pair is seen, and of what is long."""
        chunk = self.config.chunk
        return (chunk, 2 * chunk, -(-LONG // (2 * chunk)))

    def project(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> Heads:
        """Return queries, themselves at length 1 as keys, values, and buckets (B, H, R, N): one for
        all, in one round, where every pair is seen whatever they are."""
        heads = self.dims.heads
        q_BHNK = split_heads(self.query(x_BND), heads)
        v_BHNV = split_heads(self.value(x_BND), heads)
        k_BHNK = self._keys(q_BHNK)
        if self._sees_all(x_BND.shape[1]):
            buckets_BHRN = torch.zeros_like(q_BHNK[:, :, None, :, 0], dtype=torch.int64)
            return Heads(q_BHNK, k_BHNK, v_BHNV, {"buckets": buckets_BHRN})
        with torch.no_grad(), torch.autocast(x_BND.device.type, enabled=False):
            hashed_BHNK = q_BHNK
            precise = torch.promote_types(q_BHNK.dtype, torch.float32)
            if q_BHNK.dtype != precise:
                # From unrounded queries: a bucket that flips moves the chunks of all.
                bias = self.query.bias
                hashed = F.linear(
                    x_BND.to(precise),
                    self.query.weight.to(precise),
                    None if bias is None else bias.to(precise),
                )
                hashed_BHNK = split_heads(hashed, heads)
            buckets_BHRN = self.buckets(hashed_BHNK.detach(), context.key_mask_BM)
        return Heads(q_BHNK, k_BHNK, v_BHNV, {"buckets": buckets_BHRN})

    def buckets(self, x_BHNK: Tensor, mask_BN: Tensor | None) -> Tensor:
        """Return each position's bucket per round, (B, H, R, N); padding has the last of all."""
        half = max(1, x_BHNK.shape[2] // self.config.chunk)
        if self.config.parity == "lra2021":
            half = ARENA_CHUNKS // 2
        factors = [half]
        if half > COLUMNS:
            # Two hashes, whose buckets multiply to about as many.
            first = min(COLUMNS, math.ceil(math.sqrt(half / 2)))
            factors = [first, min(COLUMNS, math.ceil(half / (2 * first)))]
        total = math.prod([2 * columns for columns in factors])
        if needs_autograd(x_BHNK, None):
            bucket_BHRN = self._buckets_at_once(x_BHNK, factors)
        else:
            bucket_BHRN = self._buckets_by_round(x_BHNK, factors)
        if mask_BN is not None:
            bucket_BHRN = bucket_BHRN.masked_fill(~mask_BN[:, None, None, :], total)
        return bucket_BHRN

    def _buckets_by_round(self, x_BHNK: Tensor, factors: list[int]) -> Tensor:
        rounds = []
        # One round at a time: what all of them hash together would outweigh the attention.
        for number in range(self.config.rounds):
            bucket_BHN = torch.zeros_like(x_BHNK[..., 0], dtype=torch.int64)
            for factor, columns in enumerate(factors):
                directions_HKT = self.directions_HRK2T[:, number, :, factor, :columns].to(x_BHNK)
                bucket_BHN = bucket_BHN * (2 * columns) + _nearest(x_BHNK @ directions_HKT)
            rounds.append(bucket_BHN)
        return torch.stack(rounds, dim=2)

    def _buckets_at_once(self, x_BHNK: Tensor, factors: list[int]) -> Tensor:
        """The same by one product for all rounds, as a GPU has the memory for."""
        number = self.config.rounds
        bucket_BHNR = torch.zeros((), dtype=torch.int64, device=x_BHNK.device)
        for factor, columns in enumerate(factors):
            directions_HRKT = self.directions_HRK2T[:, :, :, factor, :columns].to(x_BHNK)
            directions_HKX = directions_HRKT.transpose(1, 2).flatten(2)
            along_BHNRT = torch.unflatten(x_BHNK @ directions_HKX, -1, (number, columns))
            bucket_BHNR = bucket_BHNR * (2 * columns) + _nearest(along_BHNRT)
        return bucket_BHNR.movedim(-1, 2).contiguous()

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        context: Context,
        state: Any = None,
        *,
        buckets: Tensor,
    ) -> tuple[Tensor, Any]:
        """Sort, attend in chunks, put back, and merge the rounds, (B, H, N, V)."""
        if not q_BHNK.numel():
            return v_BHNV, None
        precise = torch.promote_types(q_BHNK.dtype, torch.float32)
        dropout = self.dims.dropout if self.training and self.config.parity == "none" else 0.0
        n, width = q_BHNK.shape[2:]
        alike = self._sees_all(n)
        in_few_calls, unsorted = needs_autograd(q_BHNK, None), alike and not self._long(n)
        fused = in_few_calls and (unsorted or takes_merged(q_BHNK, v_BHNV, self._size(n), dropout))
        # A fused kernel adds up in float32 whatever it multiplies.
        dtype = q_BHNK.dtype if fused else precise
        outs, totals = [], []
        with torch.autocast(q_BHNK.device.type, enabled=False):
            q, k, v = (x.to(dtype) for x in (q_BHNK, k_BHNK, v_BHNV))
            if context.key_mask_BM is not None:
                padding = ~context.key_mask_BM[:, None, :, None]
                k, v = k.masked_fill(padding, 0.0), v.masked_fill(padding, 0.0)
            rounds = Rounds(
                buckets_BHRN=buckets[:, :, :1] if alike else buckets,
                size=self._size(n),
                scale=self._scale(width),
                own=self._penalty,
                causal=context.causal,
                key_mask_BN=context.key_mask_BM,
                dropout=dropout,
            )
            if unsorted:
                return self._unsorted(q, k, v, context, dropout).to(v_BHNV.dtype), None
            if fused:
                return attend_merged(q, k, v, rounds).to(v_BHNV.dtype), None
            if self._long(n) and not in_few_calls:
                return attend_rounds(q, k, v, rounds).to(v_BHNV.dtype), None
            for buckets_BHN in rounds.buckets_BHRN.unbind(2):
                out_BHNV, total_BHN = sorted_attention(
                    q,
                    k,
                    v,
                    buckets_BHN,
                    context,
                    size=rounds.size,
                    scale=rounds.scale,
                    penalty=rounds.own,
                    dropout=dropout,
                )
                outs.append(out_BHNV)
                totals.append(total_BHN)
            if len(outs) == 1:
                return outs[0].to(v_BHNV.dtype), None
            shares_RBHN1 = torch.stack(totals).softmax(0).unsqueeze(-1)
            merged = sum(share * out for share, out in zip(shares_RBHN1, outs, strict=True))
        assert isinstance(merged, Tensor)
        return merged.to(v_BHNV.dtype), None

    def _unsorted(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, dropout: float
    ) -> Tensor:
        """Return softmax over all pairs, (B, H, N, V), a position itself only where it is alone."""
        n, width = q.shape[2:]
        own_NN = torch.eye(n, dtype=q.dtype, device=q.device) * -self._penalty
        permitted = permitted_pairs(
            n, n, causal=context.causal, key_mask_BM=context.key_mask_BM, device=q.device
        )
        q = q * (self._scale(width) / default_scale(width))
        return fused_softmax(q, k, v, permitted, own_NN.unsqueeze(0), dropout=dropout)

    def oracle(
        self,
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        context: Context,
        *,
        buckets: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return softmax over all pairs with the logarithm of how often each is seen added."""
        q, k, v = q_BHNK.double(), k_BHNK.double(), v_BHNV.double()
        n = q.shape[2]
        count_BHNN = self._count(n, context, buckets).to(q.device)
        logits = torch.einsum("bhnk,bhmk->bhnm", q, k)
        if self.config.parity == "lra2021":
            logits = logits * math.sqrt(q.shape[-1])
        else:
            logits = logits - SELF * torch.eye(n, dtype=q.dtype, device=q.device)
        seen = count_BHNN > 0
        if not n:
            return v, logits
        top = logits.detach().masked_fill(~seen, -math.inf).amax(-1, keepdim=True)
        top = torch.where(seen.any(-1, keepdim=True), top, 0.0)
        shares = torch.exp((logits - top).masked_fill(~seen, 0.0)) * count_BHNN
        total = shares.sum(-1, keepdim=True)
        weights = shares / torch.where(total > 0.0, total, 1.0)
        return weights @ v, weights

    def comes_near(self, q_BHNK: Tensor, k_BGMK: Tensor, v_BGMV: Tensor, context: Context) -> Exact:
        """Softmax over queries that are keys too; a position itself counts only where it is
        alone."""
        n, width = q_BHNK.shape[2:]
        extra = {"buckets": self.buckets(q_BHNK.detach(), context.key_mask_BM)}
        heads = Heads(q_BHNK, self._keys(q_BHNK), v_BGMV, extra)
        if self.config.parity == "lra2021":
            return Exact(heads, self._scale(width))
        others_NN = ~torch.eye(n, dtype=torch.bool, device=q_BHNK.device)
        others_NN[:1, :1] = context.causal or n == 1
        return Exact(heads, self._scale(width), others_NN)

    def support(self, n: int, m: int, context: Context, *, buckets: Tensor) -> Tensor:
        """Return which pairs any round sees, (B, H, N, N)."""
        return self._count(n, context, buckets) > 0

    def _count(self, n: int, context: Context, buckets: Tensor) -> Tensor:
        """Return how often the rounds together let i read j, (B, H, N, N), on the CPU."""
        size = self._size(n)
        count = -(-n // size)
        buckets = buckets.cpu()
        places = torch.arange(n)
        before = (buckets[..., None, :] < buckets[..., :, None]) | (
            (buckets[..., None, :] == buckets[..., :, None]) & (places < places[:, None])
        )
        chunk = before.sum(-1) // size
        number = torch.zeros(*buckets.shape[:2], n, n, dtype=torch.float64)
        for chunk_BHN in chunk.unbind(2):
            for back in (0, 1):
                read = (chunk_BHN - back) % max(1, count)
                number += read[..., :, None] == chunk_BHN[..., None, :]
        if context.causal:
            number = number.tril()
        if context.key_mask_BM is not None:
            number = number * context.key_mask_BM.cpu()[:, None, None, :]
        return number

    def operations(self, n: int, *, causal: bool = False) -> int:
        """Three projections, and per round 2 N K T of each head to hash by T columns, of whole
        chunks of S as many as hold all positions, each with 2 S keys, or S where it is alone.

        Sorting takes no product. Up to two chunks nothing is hashed, and all pairs are taken once.
        """
        total = self.projection_operations(n) * 3 // 4
        size = self._size(n)
        count = -(-n // size)
        pairs = count * size * min(2, count) * size
        if self._sees_all(n):
            return total + self.pair_operations(pairs if self._long(n) else n * n)
        half = ARENA_CHUNKS // 2 if self.config.parity == "lra2021" else n // self.config.chunk
        columns = half
        if half > COLUMNS:
            first = min(COLUMNS, math.ceil(math.sqrt(half / 2)))
            columns = first + min(COLUMNS, math.ceil(half / (2 * first)))
        hashed = 2 * n * columns * self.dims.qkv_width
        return total + self.config.rounds * (hashed + self.pair_operations(pairs))

    def _keys(self, q_BHNK: Tensor) -> Tensor:
        """Return queries at length 1, or as they are."""
        if self.config.parity == "lra2021":
            return q_BHNK
        precise = torch.promote_types(q_BHNK.dtype, torch.float32)
        # Its second derivative is NaN at a query of zero, as that of padding is without biases.
        k_BHNK = refuse_second_derivative(F.normalize(q_BHNK.to(precise), dim=-1))
        return k_BHNK.to(q_BHNK.dtype)

    def _size(self, n: int) -> int:
        """Return S for n positions."""
        if self.config.parity == "lra2021":
            return n // ARENA_CHUNKS + 1
        return self.config.chunk

    def _sees_all(self, n: int) -> bool:
        """Whether every round sees every pair once: of up to two chunks, each reads both."""
        return self.config.parity == "none" and n <= 2 * self.config.chunk

    def _long(self, n: int) -> bool:
        """Whether a head has enough to do by itself; a shorter one waits for all others."""
        return n * 2 * self._size(n) >= LONG

    def _scale(self, width: int) -> float:
        """Return what logits are multiplied by."""
        return math.sqrt(width) if self.config.parity == "lra2021" else 1.0

    @property
    def _penalty(self) -> float:
        """Return what is taken off the logit of a position with itself."""
        return 0.0 if self.config.parity == "lra2021" else SELF


def _nearest(along_BHNT: Tensor) -> Tensor:
    """Return which of T directions and, behind these, of their opposites is nearest, (B, H, N).

    The first of several, as in [along, -along], which is not written out.
    """
    most, first = along_BHNT.max(-1)
    least, last = along_BHNT.min(-1)
    return torch.where(most >= -least, first, last + along_BHNT.shape[-1])
