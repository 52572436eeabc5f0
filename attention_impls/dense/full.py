"""Softmax attention with every weight written out: the reference that the others are read against.

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context, default_scale
from attention_impls.dense._cache import KeyValueCache, remember
from attention_impls.dense._exact import EXACT, ExactSoftmax
from attention_impls.dense._pairs import permitted_pairs, position_logits
from lra.core.cards import AttentionCard


class Full(ExactSoftmax):
    """softmax(q k / sqrt(K) + bias) v over all permitted keys, in O(N M) time and memory.

    As in the paper, dropout on the weights included. Logits are scaled before the product and
    the softmax runs in float32 or better; both only round differently.
    """

    card = AttentionCard(
        title="Softmax, materialised",
        paper="Vaswani et al., Attention Is All You Need, NeurIPS 2017, arXiv:1706.03762",
        year=2017,
        time="O(n m d)",
        memory="O(n m)",
        softmax="always",
        weights="convex",
        capabilities=EXACT,
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

        logits_BHNM = (q_BHNK * default_scale(q_BHNK.shape[-1])) @ k_BHMK.mT
        bias_HNM = position_logits(n, m, context, device)
        if bias_HNM is not None:
            logits_BHNM = logits_BHNM + bias_HNM
        permitted = permitted_pairs(
            n,
            m,
            causal=context.causal,
            key_mask_BM=key_mask_BM,
            device=device,
            mask_BNM=context.mask_BNM,
        )
        weights_BHNM = _safe_softmax(logits_BHNM, permitted)
        weights_BHNM = F.dropout(weights_BHNM, self.dims.dropout, self.training)
        return weights_BHNM.to(v_BHMV.dtype) @ v_BHMV, state


def _safe_softmax(logits_BHNM: Tensor, permitted: Tensor | None) -> Tensor:
    """Return the softmax over permitted keys in float32 or better; a row without any is zero.

    Such a row is left unmasked until after the softmax: of -inf alone it would be NaN, and its
    gradient too.
    """
    precise = torch.promote_types(logits_BHNM.dtype, torch.float32)
    if permitted is None:
        return logits_BHNM.softmax(dim=-1, dtype=precise)
    any_key = permitted.any(dim=-1, keepdim=True)
    logits_BHNM = logits_BHNM.masked_fill(~permitted & any_key, -math.inf)
    return logits_BHNM.softmax(dim=-1, dtype=precise).masked_fill(~any_key, 0.0)
