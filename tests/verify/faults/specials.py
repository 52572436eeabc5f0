"""Faults of positions that a request names as special: whose they are, and which are real."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_impls.contract import Context, Heads
from lra.core.cards import Capabilities
from verify.faults.dense import Dense, card


class _Special(Dense):
    """Special keys weigh more, padded ones nothing; nothing is wrong with it."""

    card = card(
        softmax="never",
        without_effect=(),
        capabilities=Capabilities(bidirectional=True, causal="strict", padding="content"),
    )

    special: Tensor | None = None

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        self.special = context.special_BN
        return super().project(x, context, source, state)

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits, special = super().logits(q, k), self.special
        return logits if special is None else logits + special[:, None, None, :].to(logits)


class SpecialOfTheFirst(_Special, law="ragged", stranger=""):
    """All examples have the first one's special positions."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        if self.special is not None:
            self.special = self.special[:1]
        return super().logits(q, k)


class PaddedSpecialRead(_Special, law="ragged", stranger=""):
    """Special positions are read by all, padded ones too."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        if mask is not None and self.special is not None:
            mask = mask | self.special
        return super().permitted(logits, causal, mask)


class SpecialsCounted(_Special, law="ragged", stranger=""):
    """Special keys weigh more the fewer there are, and padded ones are counted."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits, special = Dense.logits(self, q, k), self.special
        if special is None:
            return logits
        share = special.to(q) / special.sum(-1, keepdim=True).clamp(min=1)
        return logits + torch.log1p(share)[:, None, None, :]
