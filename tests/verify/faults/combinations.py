"""Faults that show where two fields of a request meet: a type and another sequence, a position, a
length or a step; wide heads; draws and examples."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context
from verify.faults.dense import Dense


class AnotherSequenceInSingle(Dense, law="cross"):
    """In single precision logits over another sequence are not scaled."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        apart = q.dtype == torch.float32 and 1 < q.shape[2] != k.shape[2]
        return logits * math.sqrt(q.shape[-1]) if apart else logits


class SlopesInSingle(Dense, law="bias", stranger=""):
    """In single precision the slopes of ALiBi are those of the heads in reverse."""

    def bias(self, context: Context, q: Tensor, k: Tensor) -> Tensor:
        bias = super().bias(context, q, k)
        return bias.flip(0) if bias.dim() == 3 and q.dtype == torch.float32 else bias


class StepsInSingle(Dense, law="decode", stranger=""):
    """In single precision a step of one position reads padding."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        n, m = logits.shape[-2:]
        step = causal and n == 1 < m and logits.dtype == torch.float32
        return super().permitted(logits, causal, None if step else mask)


class LongInSingle(Dense, law="causality"):
    """In single precision queries beyond a tile of 256 see all keys beyond it."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        if causal and logits.dtype == torch.float32:
            permitted = permitted.clone()
            permitted[..., 256:, 256:] = True
        return permitted


class FirstTileOfFeatures(Dense, law="oracle", stranger=""):
    """Only the first 64 features of a head are multiplied."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return q[..., :64] @ k[..., :64].mT / math.sqrt(q.shape[-1])


class AlikeInABatch(Dense, law="dropout", stranger=""):
    """All examples of a batch drop the same weights."""

    def dropped(self, weights: Tensor) -> Tensor:
        return weights * F.dropout(torch.ones_like(weights[:1]), self.dims.dropout, self.training)
