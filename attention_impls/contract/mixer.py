"""A layer without queries and keys."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

from torch import Tensor

from attention_impls.contract.layer import Layer
from attention_impls.contract.tensors import zero_padding
from attention_impls.contract.values import Context, Out


class Mixer(Layer):
    """A layer without queries and keys: a convolution, a recurrence, a transform.

    A subclass writes `mix` and `oracle`, with projections of its own. Inputs are all that there is
    to mask: what either mask calls padding is zeroed and skipped, and both find it in
    `query_mask_BN`.
    """

    def forward(
        self,
        x_BND: Tensor,
        context: Context,
        *,
        source_BMD: Tensor | None = None,
        state: Any = None,
    ) -> Out:
        """Refuse, zero the padding, mix, zero the padding."""
        self._refuse(x_BND, context, source_BMD, state)
        context = _with_one_mask(context)
        x_BND = zero_padding(x_BND, context.query_mask_BN)
        y_BND, state = self.mix(x_BND, context, state)
        return Out(zero_padding(y_BND, context.query_mask_BN), state)

    def reference(
        self, x_BND: Tensor, context: Context, *, source_BMD: Tensor | None = None
    ) -> Tensor:
        """Return the oracle's result, zero at padding, (B, N, D)."""
        context = _with_one_mask(context)
        x_BND = zero_padding(x_BND, context.query_mask_BN)
        y_BND = self.oracle(x_BND, context).to(x_BND.dtype)
        return zero_padding(y_BND, context.query_mask_BN)

    @abstractmethod
    def mix(self, x_BND: Tensor, context: Context, state: Any = None) -> tuple[Tensor, Any]:
        """Return (B, N, D) and the advanced state: the mechanism itself, fast."""

    @abstractmethod
    def oracle(self, x_BND: Tensor, context: Context) -> Tensor:
        """Return (B, N, D) in float64, by the paper's formula, written out plainly."""


def _with_one_mask(context: Context) -> Context:
    """Return the request with both masks the same: real is what neither calls padding."""
    query_mask_BN, key_mask_BN = context.query_mask_BN, context.key_mask_BM
    if query_mask_BN is key_mask_BN:
        return context
    both = query_mask_BN if key_mask_BN is None else key_mask_BN
    if query_mask_BN is not None and key_mask_BN is not None:
        both = query_mask_BN & key_mask_BN
    return replace(context, query_mask_BN=both, key_mask_BM=both)
