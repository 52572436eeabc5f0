"""Sparse Transformer, fixed: the own block, and the summary columns of all others.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
U blocks of queries   L positions in a block, l   P summary columns
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context, MechanismConfig
from attention_impls.pattern._layouts import Own, Shared, divided
from attention_impls.pattern._parts import (
    Hidden,
    Part,
    attend_part,
    merge,
    needs_autograd,
    positional,
)
from attention_impls.pattern._union import UnionOfPatterns
from lra.core.cards import AttentionCard, Capabilities


class SparseFixedConfig(MechanismConfig, frozen=True):
    """Blocks, and what of each is read from afar. The defaults are the paper's for enwik8."""

    stride: Annotated[int, msgspec.Meta(ge=1)] = 128
    """l, positions in a block."""
    summary: Annotated[int, msgspec.Meta(ge=1)] = 32
    """c, last positions of each block, which every other block reads; the paper has 8, 16, 32.
    From l on it is all of them."""


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
        capabilities=Capabilities(
            bidirectional=True,
            causal="strict",
            padding="content",
            decode="exact",
            bias=True,
            rotary=True,
        ),
    )

    @classmethod
    def exact_at(cls, n: int) -> SparseFixedConfig:
        """Return one block for all."""
        return SparseFixedConfig(stride=max(1, n), summary=1)

    @property
    def borders(self) -> tuple[int, ...]:
        """Those of its blocks."""
        return (self.config.stride,)

    def support(self, n: int, m: int, context: Context) -> Tensor:
        """Return the union, (N, M)."""
        size = self.config.stride
        union_NM = torch.zeros(n, m, dtype=torch.bool)
        for place in range(n):
            i = place + (m - n if context.causal else 0)
            union_NM[place, i - i % size : i - i % size + size] = True
            union_NM[place, torch.arange(m) % size >= size - self.config.summary] = True
            if context.causal:
                union_NM[place, i + 1 :] = False
        return union_NM

    def pattern(self, rows_N: Tensor, columns_M: Tensor, *, causal: bool) -> Tensor:
        """Return the union, from positions."""
        size, rows_N1 = self.config.stride, rows_N.unsqueeze(-1)
        union = (rows_N1 // size == columns_M // size) | self._is_summary(columns_M)
        return union & (columns_M <= rows_N1) if causal else union

    def pairs(self, n: int, m: int, *, causal: bool) -> int:
        """Return those of the blocks and of the summary columns, half of which causality spares."""
        size = self.config.stride
        summary = m // size * min(self.config.summary, size)
        return n * (size + (summary // 2 if causal else summary))

    def in_parts(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        context: Context,
    ) -> Tensor:
        """Return the merged softmax of the own block and of the others' summaries."""
        n, m, device = q_BHNK.shape[2], k_BHMK.shape[2], q_BHNK.device
        size, position = self.config.stride, context.position
        autograd = needs_autograd(q_BHNK, position)
        above = (m - n) // size
        count, first = -(-m // size) - above, above * size
        length, ahead = count * size, m - n - first
        if key_mask_BM is None:
            key_mask_BM = torch.ones(1, m, dtype=torch.bool, device=device)
        places_P = torch.arange(first, first + length, device=device).clamp(max=m - 1)
        q = divided(F.pad(q_BHNK, (0, 0, ahead, length - ahead - n)), 2, count, size)
        rows_US = places_P.view(count, size)

        own = Own(blocks=count, group=size, keys=size)
        behind = first + length - m
        k, v = (F.pad(x[:, :, first:], (0, 0, 0, behind)) for x in (k_BHMK, v_BHMV))
        future_SS = torch.ones(size, size, dtype=torch.bool, device=device).triu(1)
        future: Hidden = [(slice(0, size), future_SS)] if context.causal else []
        part = Part(
            own,
            real_BP=F.pad(key_mask_BM[:, first:], (0, behind)),
            rule=lambda blocks: future,
            bias=positional(position, own, rows_US, places_P),
            dropout=self.rate,
        )
        parts = [attend_part(q, k, v, part, autograd=autograd)]

        columns_P = torch.arange(m, device=device)
        columns_P = columns_P[self._is_summary(columns_P)]
        if len(columns_P):
            per_block = min(self.config.summary, size)
            step = per_block if context.causal else 0
            shared = Shared(blocks=count, keys=len(columns_P), step=step, first=above)

            def others(blocks: slice) -> Hidden:
                block_T11 = torch.arange(above + blocks.start, above + blocks.stop, device=device)
                block_T11 = block_T11[:, None, None]
                read_W = columns_P[: shared.reach(blocks)] // size
                hidden = read_W >= block_T11 if context.causal else read_W == block_T11
                return [(slice(0, len(read_W)), hidden)]

            part = Part(
                shared,
                real_BP=key_mask_BM[:, columns_P],
                rule=others,
                bias=positional(position, shared, rows_US, columns_P),
                dropout=self.rate,
            )
            k, v = (x.index_select(2, columns_P) for x in (k_BHMK, v_BHMV))
            parts.append(attend_part(q, k, v, part, autograd=autograd))
        out_BHNV = merge(parts).flatten(2, 3)[:, :, ahead : ahead + n]
        return out_BHNV.to(q_BHNK.dtype)

    def _is_summary(self, columns_M: Tensor) -> Tensor:
        """Return which positions are among the last c of their block."""
        size = self.config.stride
        return columns_M % size >= size - self.config.summary
