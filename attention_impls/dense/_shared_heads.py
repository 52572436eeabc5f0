"""Heads of keys that several heads of queries read, as the fused kernels of a GPU take them.

B batch   N queries   M keys   H heads   G heads of keys and values   K width of a query or key head
V width of a value head
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from attention_impls.contract import Context
from attention_impls.dense._cache import KeyValueCache, remember
from attention_impls.dense._grouped import GroupedSoftmax


class SharedHeads(GroupedSoftmax):
    """Exact softmax attention with fewer heads of keys than of queries.

    On a GPU FlashAttention shares heads of keys, in halves without a mask. In every other case
    PyTorch may share them by holding the logits of all pairs, so there each head of queries gets
    its copy of the keys.
    """

    def attend(
        self,
        q_BHNK: Tensor,
        k_BGMK: Tensor,
        v_BGMV: Tensor,
        context: Context,
        state: KeyValueCache | None = None,
    ) -> tuple[Tensor, KeyValueCache | None]:
        """Return (B, H, N, V) from q (B, H, N, K), k (B, G, M, K) and v (B, G, M, V), head h
        reading group h // (H / G); a state keeps G heads."""
        (_, heads, n, _), groups = q_BHNK.shape, k_BGMK.shape[1]
        # A single query needs no copies: its heads stand in as queries of a group.
        if q_BHNK.is_cpu or n == 1 or groups == heads:
            return super().attend(q_BHNK, k_BGMK, v_BGMV, context, state)
        if state is not None:
            state, k_BGMK, v_BGMV, key_mask_BM = remember(
                state, k_BGMK, v_BGMV, context.key_mask_BM
            )
            context = replace(context, key_mask_BM=key_mask_BM)
        square = n == k_BGMK.shape[2]
        masked = context.key_mask_BM is not None or (context.causal and not square)
        masked = masked or context.mask_BNM is not None
        biased = context.position is not None and context.position.card.acts_on == "logits"
        half = q_BHNK.dtype in (torch.float16, torch.bfloat16)
        if masked or biased or not half:
            k_BGMK, v_BGMV = (x.repeat_interleave(heads // groups, dim=1) for x in (k_BGMK, v_BGMV))
        out_BHNV, _ = super().attend(q_BHNK, k_BGMK, v_BGMV, context)
        return out_BHNV, state
