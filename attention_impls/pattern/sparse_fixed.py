"""Sparse Transformer, fixed: the own block, and the summary columns of all others.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
P summary columns
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context, MechanismConfig, Position
from attention_impls.dense._fused import fused_softmax
from attention_impls.pattern._bias import positional
from attention_impls.pattern._claims import BY_POSITION
from attention_impls.pattern._joined import has_kernel
from attention_impls.pattern._layouts import Shared
from attention_impls.pattern._own_and_summaries import attend_in_parts, attend_in_two_calls
from attention_impls.pattern._parts import (
    Part,
    attend_part,
    folds,
    merge,
    needs_autograd,
    trains,
)
from attention_impls.pattern._summary_columns import Summaries
from attention_impls.pattern._union import UnionOfPatterns
from lra.core.cards import AttentionCard


class SparseFixedConfig(MechanismConfig, frozen=True):
    """Blocks, and what of each is read from afar. The defaults are the paper's for enwik8."""

    stride: Annotated[int, msgspec.Meta(ge=1)] = 128
    """l, positions in a block."""
    summary: Annotated[int, msgspec.Meta(ge=1)] = 32
    """c, last positions of each block, which every other block reads; the paper has 8, 16, 32.
    From l on it is all of them."""
    parity: Literal["none", "lra2021"] = "none"
    """lra2021: the arena's "Sparse", to be asked for with stride=50 summary=10. The first position
    of a block is a summary too, and no key is read by an earlier query although the tasks are not
    causal; but for the class token: position 0 reads and is read by all, and blocks are counted
    from position 1. Asked for causally it is the form without a class token, where blocks begin at
    0. There it was dense with a mask; here it is not."""


class SparseFixed(UnionOfPatterns):
    """softmax(q_i k_j / sqrt(K) + bias) v_j over floor(i / l) = floor(j / l) or j mod l >= l - c.

    In O(N (l + N c / l)) time; causal, over j <= i alone, as in the paper. Both sets in one softmax
    (the paper's merged head), the same summary columns in all heads. Exact within the pattern.
    Ours: the summary columns gathered once; the own block dense; joined by their log sums, with
    the own block's summary columns, which are in both, left out of the second.
    """

    Config = SparseFixedConfig
    config: SparseFixedConfig
    trials = (
        SparseFixedConfig(stride=4, summary=1),
        SparseFixedConfig(stride=6, summary=2),
        SparseFixedConfig(stride=5, summary=2, parity="lra2021"),
    )

    card = AttentionCard(
        title="Sparse Transformer, fixed",
        paper="Child et al., Generating Long Sequences with Sparse Transformers, 2019, "
        "arXiv:1904.10509",
        year=2019,
        time="O(n (l + n c / l) d)",
        memory="O(n (d + c)); O(n (l + n c / l)) on a GPU or with a trained bias",
        softmax="configured",
        weights="convex",
        capabilities=BY_POSITION,
    )

    @classmethod
    def exact_at(cls, n: int) -> SparseFixedConfig:
        """Return one block for all."""
        return SparseFixedConfig(stride=max(1, n), summary=1)

    @property
    def borders(self) -> tuple[int, ...]:
        """Length of a block."""
        return (self.config.stride,)

    def support(self, n: int, m: int, context: Context) -> Tensor:
        """Return the union, (N, M)."""
        size, arena = self.config.stride, self.config.parity == "lra2021"
        token = 1 if arena and not context.causal else 0
        union_NM = torch.zeros(n, m, dtype=torch.bool)
        for place in range(n):
            i = place + (m - n if context.causal else 0)
            read = []
            for j in range(m):
                block, rest = divmod(j - token, size)
                summary = rest >= size - self.config.summary or (arena and rest == 0)
                read.append(block == (i - token) // size or summary)
            union_NM[place] = torch.tensor(read, dtype=torch.bool)
            if context.causal or arena:
                union_NM[place, i + 1 :] = False
            if token and place == 0:
                union_NM[place] = True
        if token:
            union_NM[:, :1] = True
        return union_NM

    def pattern(self, rows_N: Tensor, columns_M: Tensor, *, causal: bool) -> Tensor:
        """Return the union, from positions."""
        if not self._tokens(causal):
            return self._summaries.pattern(rows_N, columns_M, causal=causal)
        inner = self._summaries.pattern(rows_N - 1, columns_M - 1, causal=True)
        return inner | (rows_N == 0).unsqueeze(-1) | (columns_M == 0)

    def read_last(self, m: int, device: torch.device) -> Tensor:
        """Return the summaries of earlier blocks, then the own block so far."""
        return self._summaries.read_last(m, device)

    def pairs(self, n: int, m: int, *, causal: bool) -> int:
        """Return those of the blocks and of the summary columns, half of which causality spares."""
        summary = m // self.config.stride * self._summaries.per_block
        halved = causal or self.config.parity == "lra2021"
        return n * (self.config.stride + (summary // 2 if halved else summary))

    def pairs_in_parts(self, n: int, *, causal: bool) -> int:
        """Return those of blocks of l by l, the last one filled up, and of their queries with all
        summary columns; where causal, with those of earlier blocks, a tile at a time.

        In parity, causal but for position 0, which reads all, and which all others read.
        """
        from attention_impls.pattern._operations import shared_pairs

        size, beside = self.config.stride, 0
        if self._tokens(causal):
            beside = n + n - 1
            n, causal = n - 1, True
        count, pairs = -(-n // size), beside
        pairs += count * size * size
        columns = len(self._summaries.columns(n, self.query.weight.device))
        own = self._summaries.own_width
        if folds(self.query.weight) and own:
            return beside + count * size * own + n * columns
        if columns:
            shared = Shared(count, columns, step=self._summaries.per_block if causal else 0)
            pairs += shared_pairs(shared, size, self.dims.head_width, self.query.weight)
        return pairs

    def in_parts(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        context: Context,
    ) -> Tensor:
        """Return one softmax over the own block and the others' summaries, with the class token."""
        position, rate, summaries = context.position, self.rate, self._summaries
        token = self._tokens(context.causal)
        causal = context.causal or token > 0
        given = q_BHNK, k_BHMK, v_BHMV, key_mask_BM, position
        kernel = folds(q_BHNK) and not trains(position) and has_kernel(q_BHNK, v_BHMV, rate)
        if kernel and summaries.own_width:
            out_BHNV = attend_in_two_calls(
                *given, summaries, causal=causal, token=token, dropout=rate
            )
        elif token:
            parts = self._parts_beside_token(*given)
            out_BHNV = merge(parts).to(q_BHNK.dtype)
        else:
            parts = attend_in_parts(*given, summaries, causal=causal, origin=0, dropout=rate)
            out_BHNV = merge(parts).to(q_BHNK.dtype)
        return torch.cat([self._token_reads(*given), out_BHNV], dim=2) if token else out_BHNV

    def _parts_beside_token(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        position: Position | None,
    ) -> list[tuple[Tensor, Tensor]]:
        """Return what all but position 0 read: both sets of the others, and position 0 as a part,
        outputs (B, H, N - 1, V) and log sums."""
        n, device, first = q_BHNK.shape[2], q_BHNK.device, slice(0, 1)
        places_N = torch.arange(n, device=device)
        mask_BM = key_mask_BM
        if mask_BM is None:
            mask_BM = torch.ones(1, n, dtype=torch.bool, device=device)
        q, k, v = (x[:, :, 1:] for x in (q_BHNK, k_BHMK, v_BHMV))
        parts = attend_in_parts(
            q,
            k,
            v,
            mask_BM[:, 1:],
            position,
            self._summaries,
            causal=True,
            origin=1,
            dropout=self.rate,
        )
        token = Shared(blocks=1, keys=1)
        part = Part(
            token,
            real_BP=mask_BM[:, first],
            bias=positional(position, token, places_N[None, 1:], places_N[first]),
            dropout=self.rate,
        )
        out, lse = attend_part(
            q.unsqueeze(2),
            k_BHMK[:, :, first],
            v_BHMV[:, :, first],
            part,
            autograd=needs_autograd(q, position),
        )
        return [*parts, (out.squeeze(2), lse.squeeze(2))]

    def _token_reads(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        position: Position | None,
    ) -> Tensor:
        """Return what position 0 reads of all, (B, H, 1, V)."""
        places_N = torch.arange(q_BHNK.shape[2], device=q_BHNK.device)
        return fused_softmax(
            q_BHNK[:, :, :1],
            k_BHMK,
            v_BHMV,
            None if key_mask_BM is None else key_mask_BM[:, None, None, :],
            None if position is None else position.logits(places_N[:1], places_N),
            dropout=self.rate,
        )

    @property
    def _summaries(self) -> Summaries:
        """Return which places of a block are read from afar."""
        arena = self.config.parity == "lra2021"
        return Summaries(self.config.stride, self.config.summary, first=arena)

    def _tokens(self, causal: bool) -> int:
        """Return how many positions ahead of the blocks read and are read by all: 1 or none."""
        return 1 if self.config.parity == "lra2021" and not causal else 0
