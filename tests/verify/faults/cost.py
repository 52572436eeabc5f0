"""Faults of cost: all pairs where positions are given, and a count that is declared wrongly."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context
from lra.core.cards import Capabilities
from verify.faults.dense import Dense, card


class _Mean(Dense):
    """A mean of the values by shares of their keys, linear in memory and time; nothing is wrong
    with it."""

    card = card(
        softmax="never",
        time="O(n d)",
        memory="O(n)",
        capabilities=Capabilities(
            bidirectional=True, causal="strict", padding="content", bias=True
        ),
    )

    def is_dense(self, context: Context) -> bool:
        return False

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if self.is_dense(context):
            return super().read(q, k, v, context)
        n, m = q.shape[2], k.shape[2]
        share = k.mean(-1, keepdim=True).sigmoid()
        if context.key_mask_BM is not None:
            share = share * context.key_mask_BM[:, None, :, None]
        last = torch.arange(n) + m - n + 1 if context.causal else torch.full((n,), m)
        total, count = (
            F.pad(x.cumsum(2), (0, 0, 1, 0))[:, :, last.clamp(min=0)] for x in (v * share, share)
        )
        return total / count.clamp(min=1e-9) * q.mean(-1, keepdim=True).sigmoid()

    def operations(self, n: int, *, causal: bool = False) -> int:
        return self.projection_operations(n)


class AllPairsUnderATrainedBias(_Mean, law="memory_growth", stranger=""):
    """A bias that is trained leaves the kernel, which has no gradient for one, for all pairs."""

    def is_dense(self, context: Context) -> bool:
        return context.position is not None and any(True for _ in context.position.parameters())


class AllPairsUnderABiasInTraining(_Mean, law="operation_growth", stranger=""):
    """In training all pairs are computed where positions add to them."""

    def is_dense(self, context: Context) -> bool:
        return context.position is not None and self.training


class AllPairsUnderABiasAndAMask(_Mean, law="memory_growth", stranger=""):
    """The kernel takes a bias or a mask: for both all pairs are written out."""

    def is_dense(self, context: Context) -> bool:
        return context.position is not None and context.key_mask_BM is not None


class OneProductDeclared(Dense, law="operation_growth", stranger=""):
    """Declares the operations of the logits, and not those of the values."""

    def pair_operations(self, pairs: int) -> int:
        return super().pair_operations(pairs) // 2


class CausalDeclaredByHalf(Dense, law="operation_growth", stranger=""):
    """Declares half of all pairs where it is causal, and computes all."""

    def operations(self, n: int, *, causal: bool = False) -> int:
        return self.projection_operations(n) + self.pair_operations(n * n // (1 + causal))
