"""Multi-query attention: all heads of queries read one head of keys and values.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
1 stands where other mechanisms have heads of keys
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls.contract import Attention, Context
from attention_impls.dense._cache import KeyValueCache, empty_cache
from attention_impls.dense._grouped import grouped_attention, grouped_oracle
from lra.core.cards import AttentionCard, Capabilities


class MultiQuery(Attention):
    """softmax(q k / sqrt(K)) v with H heads of queries and one of keys and values.

    As much work as with H heads of keys, in O(N M) time, but 1 / H of them to project and to
    remember, which is what decoding waits for. By PyTorch's fused kernels, as `sdpa`. Where the
    paper widens the MLP to keep the parameters equal, ours stays as it is.
    """

    card = AttentionCard(
        title="Multi-query attention",
        paper="Shazeer, Fast Transformer Decoding: One Write-Head is All You Need, 2019, "
        "arXiv:1911.02150",
        year=2019,
        time="O(n m d)",
        memory="O(n); O(n m) with a bias, with padding where causal, with dropout on a CPU",
        softmax="always",
        weights="convex",
        capabilities=Capabilities(
            bidirectional=True,
            causal="strict",
            cross=True,
            padding="content",
            decode="exact",
            bias=True,
            rotary=True,
        ),
    )

    @property
    def kv_heads(self) -> int:
        """One."""
        return 1

    def attend(
        self,
        q_BHNK: Tensor,
        k_B1MK: Tensor,
        v_B1MV: Tensor,
        context: Context,
        state: KeyValueCache | None = None,
    ) -> tuple[Tensor, KeyValueCache | None]:
        """Return softmax(logits) v; with a state, over the remembered keys too."""
        dropout = self.dims.dropout if self.training else 0.0
        return grouped_attention(q_BHNK, k_B1MK, v_B1MV, context, state, dropout=dropout)

    def oracle(
        self, q_BHNK: Tensor, k_B1MK: Tensor, v_B1MV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return the same by explicit sums in float64."""
        return grouped_oracle(q_BHNK, k_B1MK, v_B1MV, context)

    def init_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> KeyValueCache:
        """Return an empty cache of one head for `length` positions."""
        width = self.dims.head_width
        return empty_cache(batch, 1, width, length=length, device=device, dtype=dtype)
