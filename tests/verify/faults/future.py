"""Faults that let the future in."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Context
from lra.core.cards import Capabilities
from verify.faults.dense import Dense, card


class SharedMaximum(Dense, law="causality"):
    """Features are shifted by one maximum over all keys and lifted by 1e-4: a large later key
    drowns the earlier ones (the reference code of the Performer)."""

    card = card(softmax="never")

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        phi_q = (q - q.amax(-1, keepdim=True)).exp() + 1e-4
        phi_k = (k - k.amax((-2, -1), keepdim=True)).exp() + 1e-4
        weights = phi_q @ phi_k.mT
        weights = weights * self.permitted(weights, context.causal, context.key_mask_BM)
        return weights @ v / weights.sum(-1, keepdim=True).clamp(min=1e-12)


class MeanOfAll(Dense, law="causality"):
    """Logits are divided by the mean length of all keys."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) / k.norm(dim=-1).mean(-1)[:, :, None, None]


class LengthInConstant(Dense, law="causality"):
    """The temperature depends on how long the input is."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) * math.log(1 + k.shape[-2])


class MaximumOfAllUnderflows(Dense, law="causality"):
    """One maximum is taken off each row, of the keys that it may not see too. It cancels, until a
    later key is so large that nothing is left of the earlier ones."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        exponentials = (logits - logits.amax(-1, keepdim=True)).exp() * permitted
        return exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-300)


class MaskInPlaceOfCausal(Dense, law="causality"):
    """There is one argument for a mask: padding takes the place of the causal one."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        return super().permitted(logits, causal and mask is None, mask)


class LooksAheadByOne(Dense, law="causality"):
    """The causal mask is drawn one diagonal too far."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        n, m = logits.shape[-2:]
        permitted = super().permitted(logits, False, mask)
        too_far = torch.ones(n, m, dtype=torch.bool).tril(m - n + 1)
        return permitted & too_far if causal else permitted


class LeaksInTraining(Dense, law="causality"):
    """Neither the flag nor the mask is read in training."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        if self.training:
            return super().permitted(logits, False, None)
        return super().permitted(logits, causal, mask)


class ValuesFromTheFuture(Dense, law="values_causality"):
    """A hundredth of the mean of all values is in every output."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        out = super().read(q, k, v, context)
        return out + v.mean(2, keepdim=True) / 100


class AlignedAtTheStart(Dense, law="cross", stranger=""):
    """With fewer queries than keys, the causal mask starts at the first key, not the last."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, False, mask)
        from_the_start = torch.ones(logits.shape[-2:], dtype=torch.bool).tril()
        return permitted & from_the_start if causal else permitted


class AlignedAtTheStartInTheOracleToo(AlignedAtTheStart, law="cross", stranger=""):
    """The oracle is written from the same misreading."""

    card = card(
        capabilities=Capabilities(
            bidirectional=True, causal="strict", cross=True, padding="content"
        )
    )

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        pattern = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
        pattern = pattern.tril() if context.causal else pattern
        rows = replace(context, causal=False)
        return softmax_oracle(q, k, v, rows, pattern)


class OffsetNeverNegative(Dense, law="cross", stranger=""):
    """With more queries than keys, the first ones read keys where they stand before them all."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        n, m = logits.shape[-2:]
        permitted = super().permitted(logits, False, mask)
        behind = torch.ones(n, m, dtype=torch.bool).tril(max(m - n, 0))
        return permitted & behind if causal else permitted


class FutureChoosesThePast(Dense, law="causality"):
    """Keeps the eight keys of the largest norm: later ones push earlier ones out."""

    card = card(softmax="never")

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        score = logits.square().mean(-2)
        kept = score >= score.topk(min(8, score.shape[-1]), -1).values[..., -1:]
        return permitted & (kept.unsqueeze(-2) | torch.eye(*logits.shape[-2:], dtype=torch.bool))
