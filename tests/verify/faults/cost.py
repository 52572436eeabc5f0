"""Faults of cost: all pairs where positions are given, and a count that is declared wrongly."""

from __future__ import annotations

from torch import Tensor

from attention_impls.contract import Context
from lra.core.cards import Capabilities
from verify.faults.dense import Dense, card


class _Mean(Dense):
    """A mean of the values, linear in memory and time; nothing is wrong with it."""

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
        return v.cumsum(2) if context.causal else v.mean(2, keepdim=True).expand_as(v)

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
