"""Faults that show where another sequence meets a position, training or a gradient mode alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context, Heads
from verify.faults.dense import Dense


class CrossedCacheUnturned(Dense, law="gradient_modes", stranger=""):
    """For generation keys of another sequence are taken from a cache, which holds them before they
    are turned."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        heads = super().project(x, context, source, state)
        if source is None or torch.is_grad_enabled():
            return heads
        still = super().project(x, replace(context, position=None), source, state)
        return heads._replace(k_BGMK=still.k_BGMK)


class CrossedBiasTrainedAsOwn(Dense, law="training", stranger=""):
    """In training rows of the bias are counted from the first key, of another sequence too."""

    def bias(self, context: Context, q: Tensor, k: Tensor) -> Tensor:
        if self.training and q.shape[2] != k.shape[2]:
            context = replace(context, causal=False)
        return super().bias(context, q, k)


class CrossedDropsNothing(Dense, law="dropout", stranger=""):
    """Weights on another sequence are not dropped where a bias stands on their logits."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        self.biased = context.position is not None and q.shape[2] != k.shape[2]
        return super().read(q, k, v, context)

    def dropped(self, weights: Tensor) -> Tensor:
        return weights if self.biased else super().dropped(weights)


class CrossedDroppedTwice(Dense, law="dropout_mean", stranger=""):
    """Weights on another sequence are dropped, and divided by the share kept once more."""

    def dropped(self, weights: Tensor) -> Tensor:
        dropped = super().dropped(weights)
        apart = self.training and weights.shape[-1] != weights.shape[-2]
        return dropped / (1 - self.dims.dropout) if apart else dropped


class CrossedBiasDetached(Dense, law="bias", stranger=""):
    """A trained bias on another sequence is taken for a constant."""

    def bias(self, context: Context, q: Tensor, k: Tensor) -> Tensor:
        bias = super().bias(context, q, k)
        return bias.detach() if q.shape[2] != k.shape[2] else bias


class CrossedKeysDetached(Dense, law="gradcheck"):
    """Another sequence is taken for what a frozen encoder gave: keys get no gradient."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k if q.shape[2] == k.shape[2] else k.detach())


class CrossedQueriesFromTheFirst(Dense, law="rotary", stranger=""):
    """Queries of another sequence are turned from place 0, causal or not."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        heads = super().project(x, context, source, state)
        if source is None:
            return heads
        return heads._replace(
            q_BHNK=super().project(x, replace(context, causal=False), source, state).q_BHNK
        )


class CrossedBiasKeptByShape(Dense, law="sequel", stranger=""):
    """The bias on another sequence is kept by its shape, whatever the direction."""

    def prepare(self) -> None:
        self.kept: dict[tuple[int, ...], Tensor] = {}

    def bias(self, context: Context, q: Tensor, k: Tensor) -> Tensor:
        found = super().bias(context, q, k)
        if q.shape[2] == k.shape[2] or found.dim() == 0 or found.requires_grad:
            return found
        return self.kept.setdefault(tuple(found.shape), found).to(q.dtype)


class CrossedMaskForgottenInTraining(Dense, law="dropout_mean", stranger=""):
    """Under dropout a kernel for another sequence is called that takes no mask beside a bias."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        apart = self.training and self.dims.dropout and q.shape[2] != k.shape[2]
        if apart and context.position is not None:
            context = replace(context, key_mask_BM=None)
        return super().read(q, k, v, context)


class DropsInSingleAlone(Dense, law="dropout", stranger=""):
    """In half precision a kernel is called that knows no dropout."""

    def dropped(self, weights: Tensor) -> Tensor:
        is_half = weights.dtype in (torch.bfloat16, torch.float16)
        return weights if is_half else super().dropped(weights)


class DividedInSingleAlone(Dense, law="dropout_mean", stranger=""):
    """In half precision what is kept is not divided by its share."""

    def dropped(self, weights: Tensor) -> Tensor:
        dropped = super().dropped(weights)
        is_half = weights.dtype in (torch.bfloat16, torch.float16)
        return dropped * (1 - self.dims.dropout) if is_half and self.training else dropped


class AlikeInALayer(Dense, law="dropout", stranger=""):
    """All heads of an example drop the same weights."""

    def dropped(self, weights: Tensor) -> Tensor:
        kept = F.dropout(torch.ones_like(weights[:, :1]), self.dims.dropout, self.training)
        return weights * kept
