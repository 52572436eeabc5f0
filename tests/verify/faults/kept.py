"""Faults of a state that is made of another sequence once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention_impls.contract import Context, CrossState, Out, split_heads
from attention_impls.dense._exact import SourceKeys
from verify.faults.dense import Dense


class Sequence(NamedTuple):
    """The other sequence itself."""

    source_BMD: Tensor
    mask_BM: Tensor | None


class SourceReadAgain(Dense, law="cross_decode", stranger=""):
    """Keeps the sequence, not its keys, and projects it again at each call."""

    def keep_source(self, source: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Any:
        return Sequence(source, mask)

    def attend_kept(self, q: Tensor, kept: Sequence, context: Context) -> Tensor:
        k, v = (split_heads(x(kept.source_BMD), self.kv_heads) for x in (self.key, self.value))
        return self.read(q, k, v, replace(context, key_mask_BM=kept.mask_BM))


class SourceMaskForgotten(Dense, law="cross_decode", stranger=""):
    """Keeps no mask: the padding of the sequence is a key of zeros."""

    def keep_source(self, source: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Any:
        return super().keep_source(source, None, dtype)


class QueriesMaskForTheSource(Dense, law="cross_decode", stranger=""):
    """Masks what it kept by the mask of the queries, wherever that fits."""

    def attend_kept(self, q: Tensor, kept: SourceKeys, context: Context) -> Tensor:
        mask, own = context.key_mask_BM, kept.mask_BM
        if mask is not None and own is not None and mask.shape == own.shape:
            kept = kept._replace(mask_BM=mask)
        return super().attend_kept(q, kept, context)


class SourceFades(Dense, law="cross_decode", stranger=""):
    """Each call writes into the values that it kept."""

    def attend_kept(self, q: Tensor, kept: SourceKeys, context: Context) -> Tensor:
        out = super().attend_kept(q, kept, context)
        kept.v_BGMV.mul_(0.99)
        return out


class CountsCalls(Dense, law="cross_decode", stranger=""):
    """Counts the calls that read what it kept, not the queries."""

    def forward(self, x: Tensor, context: Context, *, state: Any = None, **rest: Any) -> Out:
        y, after = super().forward(x, context, state=state, **rest)
        if isinstance(state, CrossState):
            after = state._replace(seen_B=state.seen_B + 1)
        return Out(y, after)
