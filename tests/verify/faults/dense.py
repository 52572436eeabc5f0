"""Honest softmax attention in steps, of which a fault breaks one."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from attention_impls.contract import Context, causal_mask
from attention_impls.dense._cache import remember
from attention_impls.dense.full import Full
from lra.core.cards import AttentionCard, Capabilities


def card(**changes: Any) -> AttentionCard:
    """Return the card of honest softmax attention with other claims."""
    claims = {
        "softmax": "always",
        "weights": "convex",
        "capabilities": Capabilities(
            bidirectional=True,
            causal="strict",
            cross=True,
            padding="content",
            decode="exact",
            bias=True,
            rotary=True,
        ),
        **changes,
    }
    return AttentionCard(
        title="A fault",
        paper="none",
        year=2026,
        time="O(n m d)",
        memory=claims.pop("memory", "O(n m)"),  # type: ignore[arg-type]
        **claims,  # type: ignore[arg-type]
    )


class Dense(Full):
    """softmax(q k / sqrt(K)) v, written out; nothing is wrong with it."""

    card = card()

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        mask = context.key_mask_BM
        if state is not None:
            state, k, v, mask = self.remember(state, k, v, mask)
        logits = self.logits(q, k) + self.bias(context, q, k)
        permitted = self.permitted(logits, context.causal, mask)
        return self.weights(logits, permitted) @ v, state

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        return remember(state, k, v, mask)

    def bias(self, context: Context, q: Tensor, k: Tensor) -> Tensor:
        n, m = q.shape[2], k.shape[2]
        rows, columns = torch.arange(n) + (m - n) * context.causal, torch.arange(m)
        found = None if context.position is None else context.position.logits(rows, columns)
        return torch.zeros((), dtype=q.dtype) if found is None else found.to(q.dtype)

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT / math.sqrt(q.shape[-1])

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        n, m = logits.shape[-2:]
        permitted = torch.ones_like(logits, dtype=torch.bool)
        if causal:
            permitted = permitted & causal_mask(n, m)
        return permitted if mask is None else permitted & mask[:, None, None, :]

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        some = permitted.any(-1, keepdim=True)
        logits = logits.masked_fill(~permitted & some, -math.inf)
        return logits.softmax(-1).masked_fill(~some, 0.0)
