"""Memory-efficient attention: exact softmax by chunks of queries and keys.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from torch import Tensor

from attention_impls.contract import Context, MechanismConfig
from attention_impls.dense._cache import KeyValueCache, remember
from attention_impls.dense._exact import EXACT, ExactSoftmax
from attention_impls.dense._streamed import streamed_attention
from lra.core.cards import AttentionCard


class ChunkedConfig(MechanismConfig, frozen=True):
    """Sizes of chunks: results do not depend on them. Ours are for a processor's cache; the
    paper's code takes 1024 queries and 4096 keys."""

    query_chunk: Annotated[int, msgspec.Meta(ge=1)] = 256
    """Queries worked on at once."""
    key_chunk: Annotated[int, msgspec.Meta(ge=1)] = 512
    """Keys that they meet at once."""


class Chunked(ExactSoftmax):
    """softmax(q k / sqrt(K) + bias) v with no more than one chunk of weights at any time.

    In O(N M) time and O(N + M) memory, whatever is asked for: a bias, padding and dropout are made
    for one chunk after the other, where fused kernels fall back to a mask of all pairs. The
    softmax is summed up as chunks of keys pass; the backward pass makes their weights again, with
    the same dropout. Ours: chunks of keys that a causal query may not see are skipped.
    """

    Config = ChunkedConfig
    config: ChunkedConfig
    trials = (ChunkedConfig(query_chunk=4, key_chunk=3), ChunkedConfig(query_chunk=1, key_chunk=8))

    card = AttentionCard(
        title="Softmax, chunked",
        paper="Rabe and Staats, Self-attention Does Not Need O(n^2) Memory, 2021, arXiv:2112.05682",
        year=2021,
        time="O(n m d)",
        memory="O(n)",
        softmax="always",
        weights="convex",
        capabilities=EXACT,
    )

    @property
    def borders(self) -> tuple[int, ...]:
        """Lengths of a chunk of queries and of a chunk of keys."""
        return (self.config.query_chunk, self.config.key_chunk)

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        context: Context,
        state: KeyValueCache | None = None,
    ) -> tuple[Tensor, KeyValueCache | None]:
        """Return softmax(logits) v; with a state, over the remembered keys too."""
        key_mask_BM = context.key_mask_BM
        if state is not None:
            state, k_BHMK, v_BHMV, key_mask_BM = remember(state, k_BHMK, v_BHMV, key_mask_BM)
        out_BHNV = streamed_attention(
            q_BHNK,
            k_BHMK,
            v_BHMV,
            key_mask_BM,
            context,
            chunks=(self.config.query_chunk, self.config.key_chunk),
            dropout=self.dims.dropout if self.training else 0.0,
        )
        return out_BHNV, state

    def operations(self, n: int, *, causal: bool = False) -> int:
        """Each chunk of queries and its keys: all, or causally those up to its last query."""
        starts = range(0, n, self.config.query_chunk)
        stops = [min(start + self.config.query_chunk, n) for start in starts]
        pairs = sum(
            (stop - start) * (stop if causal else n)
            for start, stop in zip(starts, stops, strict=True)
        )
        return self.projection_operations(n) + self.pair_operations(pairs)
