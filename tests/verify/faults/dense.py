"""Honest softmax attention in steps, of which a fault breaks one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context, Dims, MechanismConfig, causal_mask
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
            cross_decode="exact",
            bias=True,
            rotary=True,
        ),
        **changes,
    }
    return AttentionCard(
        title="A fault",
        paper="none",
        year=2026,
        time=claims.pop("time", "O(n m d)"),  # type: ignore[arg-type]
        memory=claims.pop("memory", "O(n m)"),  # type: ignore[arg-type]
        **claims,  # type: ignore[arg-type]
    )


class Caught(NamedTuple):
    """By which law a fault is caught, and by which in other people's code; "" where by none."""

    law: str
    stranger: str


FAULTS: dict[type[Dense], Caught] = {}
"""All that were defined."""


class Dense(Full):
    """softmax(q k / sqrt(K)) v, written out; nothing is wrong with it."""

    card = card()

    def __init_subclass__(cls, law: str = "", stranger: str | None = None) -> None:
        """Note a fault for which a law is named; in a stranger it is the same unless another is."""
        if law:
            FAULTS[cls] = Caught(law, law if stranger is None else stranger)

    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **rest: Any) -> None:
        super().__init__(dims, config, **rest)
        self.prepare()

    def prepare(self) -> None:
        """Make what a fault has beside the projections."""

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        if state is not None:
            state, k, v, mask = self.remember(state, k, v, context.key_mask_BM)
            context = replace(context, key_mask_BM=mask)
        return self.read(q, k, v, context), state

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        logits = self.logits(q, k) + self.bias(context, q, k)
        permitted = self.permitted(logits, context.causal, context.key_mask_BM)
        return self.dropped(self.weights(logits, permitted)) @ v

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

    def dropped(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, self.dims.dropout, self.training)
