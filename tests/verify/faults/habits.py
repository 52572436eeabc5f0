"""Faults at sizes that people train at, and in what a layer does beside its output."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Context
from verify.faults.dense import Dense, card


class LastTileForgotten(Dense, law="oracle", stranger=""):
    """From two tiles of 128 on, whole ones alone are computed, and the last is taken for a rest."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        out = super().read(q, k, v, context)
        n = q.shape[2]
        if n < 256 or n % 128:
            return out
        return F.pad(out[:, :, :-128], (0, 0, 0, 128))


class WideHeadsScaledByHalf(Dense, law="oracle", stranger=""):
    """Heads wider than 100 are computed in two halves, and scaled as one of them."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        wide = q.shape[-1] > 100
        return super().logits(q * math.sqrt(2), k) if wide else super().logits(q, k)


class MasksBySixteen(Dense, law="padding_content"):
    """Examples go sixteen at a time, each group with the masks of the first."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        if mask is not None and len(mask) > 16:
            mask = mask[torch.arange(len(mask)) % 16]
        return super().permitted(logits, causal, mask)


class CausalInTheLastLayer(Dense, law="causality", stranger=""):
    """Layers before the last are taken for an encoder's."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        is_last = self.layer_index == self.dims.layers - 1
        return super().permitted(logits, causal and is_last, mask)


class StateUnasked(Dense, law="output", stranger=""):
    """Hands out its keys and values as a state, asked for or not."""

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        out, after = super().attend(q, k, v, context, state)
        return out, (k, v) if state is None else after


class StepsShrinkWeights(Dense, law="persistent_draws", stranger=""):
    """`after_step` decays the projection of keys, as if it were the optimiser."""

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        self.key.weight.mul_(0.999)


class ScoreAsALambda(Dense, law="copies", stranger=""):
    """The score is a lambda, which a deep copy shares and no pickle holds."""

    def prepare(self) -> None:
        self.score = lambda q, k: q @ k.mT / math.sqrt(q.shape[-1])

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        scored: Tensor = self.score(q, k)
        return scored


class GainKeptByVersion(Dense, law="copies"):
    """A gain is kept in single precision until its version changes: a parameter put in its place
    has the same version."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.gain = nn.Parameter(torch.rand(self.dims.head_width) + 0.5)
        self.kept: tuple[int, Tensor] | None = None

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return super().logits(q * self.gain.to(q), k)
        if self.kept is None or self.kept[0] != self.gain._version:
            self.kept = self.gain._version, self.gain.detach().clone()
        return super().logits(q * self.kept[1].to(q), k)

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        return softmax_oracle(q.double() * self.gain.double(), k, v, context)
