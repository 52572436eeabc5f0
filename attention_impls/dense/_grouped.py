"""Exact softmax attention by fused kernels; several heads of queries may read one head of keys.

B batch   N queries   M keys   H heads   G heads of keys and values   S = H / G   K width of a query
or key head   V width of a value head
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls.contract import Context
from attention_impls.dense._cache import KeyValueCache, remember
from attention_impls.dense._exact import ExactSoftmax
from attention_impls.dense._fused import fused_softmax
from attention_impls.dense._pairs import permitted_pairs, position_logits


class GroupedSoftmax(ExactSoftmax):
    """Exact softmax attention by PyTorch's fused kernels."""

    def attend(
        self,
        q_BHNK: Tensor,
        k_BGMK: Tensor,
        v_BGMV: Tensor,
        context: Context,
        state: KeyValueCache | None = None,
    ) -> tuple[Tensor, KeyValueCache | None]:
        """Return (B, H, N, V), head h reading group h // S; with a state, over the remembered keys
        too, of which it keeps G heads."""
        dropout = self.dims.dropout if self.training else 0.0
        key_mask_BM = context.key_mask_BM
        if state is not None:
            state, k_BGMK, v_BGMV, key_mask_BM = remember(state, k_BGMK, v_BGMV, key_mask_BM)
        (_, heads, n, _), (batch, groups, m, _) = q_BHNK.shape, k_BGMK.shape
        device = q_BHNK.device

        bias_HNM = position_logits(n, m, context, device)
        # PyTorch aligns its own causal mask at the start, so it serves squares only.
        by_name = context.causal and n == m and key_mask_BM is None and bias_HNM is None
        by_name = by_name and context.mask_BNM is None
        permitted = None
        if not by_name:
            permitted = permitted_pairs(
                n,
                m,
                causal=context.causal,
                key_mask_BM=key_mask_BM,
                device=device,
                mask_BNM=context.mask_BNM,
            )
        if n == 1:
            # One position: a group's heads stand in as its queries, and its keys are read once.
            q_BGSK = q_BHNK.reshape(batch, groups, heads // groups, -1)
            bias_GSM = None
            if bias_HNM is not None:
                bias_GSM = bias_HNM.reshape(*bias_HNM.shape[:-3], groups, heads // groups, m)
            out_BGSV = fused_softmax(q_BGSK, k_BGMK, v_BGMV, permitted, bias_GSM, dropout=dropout)
            return out_BGSV.reshape(batch, heads, 1, -1), state

        shared = groups < heads and q_BHNK.is_cpu and torch.is_grad_enabled()
        traced = torch.compiler.is_compiling()  # which does not know of threads
        if shared and not traced and batch * groups < torch.get_num_threads():
            # The kernel's backward pass works on a group by one thread; copies occupy them all.
            k_BGMK, v_BGMV = (x.repeat_interleave(heads // groups, dim=1) for x in (k_BGMK, v_BGMV))
        out_BHNV = fused_softmax(
            q_BHNK, k_BGMK, v_BGMV, permitted, bias_HNM, causal=by_name, dropout=dropout
        )
        return out_BHNV, state
