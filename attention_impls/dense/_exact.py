"""Base class of every form of exact softmax attention: claims, oracle, cache.

B batch   N queries   M keys   H heads   G heads of keys and values   K width of a query or key head
V width of a value head
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Attention, Context, split_heads
from attention_impls.dense._cache import KeyValueCache, empty_cache
from lra.core.cards import Capabilities

EXACT = Capabilities(
    bidirectional=True,
    causal="strict",
    cross=True,
    padding="content",
    decode="exact",
    cross_decode="exact",
    bias=True,
    rotary=True,
    arbitrary_mask=True,
    positions_by_index=True,
)


class SourceKeys(NamedTuple):
    """Keys and values of another sequence."""

    k_BGMK: Tensor
    v_BGMV: Tensor
    mask_BM: Tensor | None
    """Which of them are real; None where all are."""


class ExactSoftmax(Attention):
    """softmax(q k / sqrt(K) + bias) v over all permitted keys; a subclass says how."""

    def oracle(
        self, q_BHNK: Tensor, k_BGMK: Tensor, v_BGMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return it by explicit sums in float64, each group of keys copied for its heads."""
        heads = torch.arange(q_BHNK.shape[1], device=q_BHNK.device)
        group_H = heads * k_BGMK.shape[1] // len(heads)
        return softmax_oracle(q_BHNK, k_BGMK[:, group_H], v_BGMV[:, group_H], context)

    def operations(self, n: int, *, causal: bool = False) -> int:
        """All pairs in either direction: what a causal kernel may skip is not taken off."""
        return self.projection_operations(n) + self.pair_operations(n * n)

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> KeyValueCache:
        """Return an empty cache of G heads for `length` positions."""
        heads, width = self.kv_heads, self.dims.head_width
        return empty_cache(batch, heads, width, length=length, device=device, dtype=dtype)

    def keep_source(
        self, source_BMD: Tensor, mask_BM: Tensor | None, dtype: torch.dtype
    ) -> SourceKeys:
        """Return the source's keys and values, of G heads: 2 M G K numbers a row."""
        k_BGMK, v_BGMV = (
            split_heads(projection(source_BMD), self.kv_heads).to(dtype).contiguous()
            for projection in (self.key, self.value)
        )
        return SourceKeys(k_BGMK, v_BGMV, None if mask_BM is None else mask_BM.clone())

    def attend_kept(self, q_BHNK: Tensor, kept: SourceKeys, context: Context) -> Tensor:
        """Return the attention to these keys, as without a state."""
        asked = replace(context, key_mask_BM=kept.mask_BM)
        out_BHNV, _ = self.attend(q_BHNK, kept.k_BGMK, kept.v_BGMV, asked)
        return out_BHNV
