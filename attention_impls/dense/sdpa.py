"""Exact softmax attention by PyTorch's fused kernels: the one to beat.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Attention, Context
from attention_impls.dense._cache import KeyValueCache, empty_cache, remember
from attention_impls.dense._fused import fused_softmax
from attention_impls.dense._pairs import permitted_pairs, position_logits
from lra.core.cards import AttentionCard, Capabilities


class Sdpa(Attention):
    """softmax(q k / sqrt(K) + bias) v, computed tile by tile and never written out.

    PyTorch picks the kernel: on a GPU, FlashAttention or its like where no mask is given. So a
    mask is handed over only where something must be masked, and plain causal attention by name.
    A bias is such a mask, and so is causal attention with padding: time stays quadratic and memory
    becomes so. On a CPU dropout on the weights also takes PyTorch's unfused kernel.
    """

    card = AttentionCard(
        title="Softmax, fused",
        paper="Dao et al., FlashAttention: Fast and Memory-Efficient Exact Attention with "
        "IO-Awareness, NeurIPS 2022, arXiv:2205.14135",
        year=2022,
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
        n, m, device = q_BHNK.shape[2], k_BHMK.shape[2], q_BHNK.device

        bias_HNM = position_logits(n, m, context, device)
        # PyTorch aligns its own causal mask at the start, so it serves squares only.
        by_name = context.causal and n == m and key_mask_BM is None and bias_HNM is None
        permitted = None
        if not by_name:
            permitted = permitted_pairs(
                n, m, causal=context.causal, key_mask_BM=key_mask_BM, device=device
            )
        dropout = self.dims.dropout if self.training else 0.0
        out_BHNV = fused_softmax(
            q_BHNK, k_BHMK, v_BHMV, permitted, bias_HNM, causal=by_name, dropout=dropout
        )
        return out_BHNV, state

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return the same by explicit sums in float64."""
        return softmax_oracle(q_BHNK, k_BHMK, v_BHMV, context)

    def init_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> KeyValueCache:
        """Return an empty cache for `length` positions."""
        heads, width = self.kv_heads, self.dims.head_width
        return empty_cache(batch, heads, width, length=length, device=device, dtype=dtype)
