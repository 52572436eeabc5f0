"""Base class of the Sparse Transformer's two patterns: short inputs, single steps, the cache.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Attention, Context, Position
from attention_impls.dense._cache import KeyValueCache, empty_cache, remember
from attention_impls.dense._fused import fused_softmax
from attention_impls.pattern._parts import dense_is_cheaper, needs_autograd


class UnionOfPatterns(Attention):
    """One softmax over the union of two sets of keys, which follow from positions alone.

    A subclass says which pairs are in it (`pattern`), how many pairs its blocks would work off, and
    how. Short inputs take one dense call, single steps the keys that the step may read.
    """

    @abstractmethod
    def pattern(self, rows_N: Tensor, columns_M: Tensor, *, causal: bool) -> Tensor:
        """Return which queries may read which keys, (N, M), from their positions."""

    @abstractmethod
    def read_last(self, m: int, device: torch.device) -> Tensor:
        """Return which of m positions the last one reads, each once, from sizes alone."""

    @abstractmethod
    def pairs(self, n: int, m: int, *, causal: bool) -> int:
        """Return how many pairs `in_parts` computes."""

    @abstractmethod
    def in_parts(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        context: Context,
    ) -> Tensor:
        """Return (B, H, N, V) by parts of the keys; queries stand at their end."""

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        context: Context,
        state: KeyValueCache | None = None,
    ) -> tuple[Tensor, KeyValueCache | None]:
        """Return attention over the union; with a state, also to what it remembers."""
        key_mask_BM = context.key_mask_BM
        if state is not None:
            state, k_BHMK, v_BHMV, key_mask_BM = remember(state, k_BHMK, v_BHMV, key_mask_BM)
        n, m = q_BHNK.shape[2], k_BHMK.shape[2]
        dense = self._is_dense(n, m, context.causal, q_BHNK, context.position, self.rate)
        compute = self._dense if dense else self.in_parts
        return compute(q_BHNK, k_BHMK, v_BHMV, key_mask_BM, context), state

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return full attention under the union's mask, in float64."""
        n, m = q_BHNK.shape[2], k_BHMK.shape[2]
        return softmax_oracle(q_BHNK, k_BHMK, v_BHMV, context, self.support(n, m, context))

    def operations(self, n: int, *, causal: bool = False) -> int:
        """Operations of the parts, or of all pairs where one dense call is cheaper."""
        dense = self._is_dense(n, n, causal, self.query.weight, None, dropout=0.0)
        pairs = n * n if dense else self.pairs_in_parts(n, causal=causal)
        return self.projection_operations(n) + self.pair_operations(pairs)

    @abstractmethod
    def pairs_in_parts(self, n: int, *, causal: bool) -> int:
        """Return how many pairs `in_parts` computes, padded ones included; `pairs` estimates."""

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> KeyValueCache:
        """Return an empty cache for `length` positions: later queries may read any of them."""
        heads, width = self.dims.heads, self.dims.head_width
        return empty_cache(batch, heads, width, length=length, device=device, dtype=dtype)

    @property
    def rate(self) -> float:
        """Return the dropout in force."""
        return self.dims.dropout if self.training else 0.0

    def _is_dense(
        self,
        n: int,
        m: int,
        causal: bool,
        like: Tensor,
        position: Position | None,
        dropout: float,
    ) -> bool:
        """Whether all pairs are computed, on the device of `like`."""
        pairs = self.pairs(n, m, causal=causal)
        return n <= 1 or dense_is_cheaper(
            n * m,
            pairs,
            parts=2,
            device=like.device,
            autograd=needs_autograd(like, position),
            # The last border is the stride: so few positions are all in the union.
            reached=m <= self.borders[-1],
            dropout=dropout,
        )

    def _dense(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        key_mask_BM: Tensor | None,
        context: Context,
    ) -> Tensor:
        """Return the same in one fused call; for one query, over the keys that it reads."""
        n, m, device = q_BHNK.shape[2], k_BHMK.shape[2], q_BHNK.device
        columns_M = torch.arange(m, device=device)
        rows_N = torch.arange(n, device=device) + (m - n if context.causal else 0)
        if n == 1 and context.causal and not torch.compiler.is_compiling():
            columns_M = self.read_last(m, device)
            k_BHMK, v_BHMV = (x.index_select(2, columns_M) for x in (k_BHMK, v_BHMV))
            if key_mask_BM is not None:
                key_mask_BM = key_mask_BM[:, columns_M]
        permitted = self.pattern(rows_N, columns_M, causal=context.causal)
        if key_mask_BM is not None:
            permitted = permitted & key_mask_BM[:, None, None, :]
        position = context.position
        bias_HNM = None if position is None else position.logits(rows_N, columns_M)
        return fused_softmax(q_BHNK, k_BHMK, v_BHMV, permitted, bias_HNM, dropout=self.rate)
