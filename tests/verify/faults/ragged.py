"""Faults that show only where examples of a batch are padded differently, or masks lie about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attention_impls.contract import Context, Out
from verify.faults.dense import Dense


class CutToTheFirstExample(Dense, law="ragged"):
    """Keys behind the last real one of the first example are cut off, for all: batches were sorted
    by length where it was written."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        mask = context.key_mask_BM
        if mask is not None and len(mask) and not context.causal and context.position is None:
            longest = int(mask[0].sum())
            k, v, mask = k[:, :, :longest], v[:, :, :longest], mask[:, :longest]
            context = replace(context, key_mask_BM=mask)
        return super().read(q, k, v, context)


class SortedAndNotPutBack(Dense, law="ragged"):
    """Examples are sorted by length for packing, longest first, and stay in that order."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        out, mask = super().read(q, k, v, context), context.key_mask_BM
        if mask is None:
            return out
        return out[mask.sum(-1).argsort(descending=True, stable=True)]


class OneEmptyEmptiesAll(Dense, law="ragged"):
    """A batch with an example that is padding alone is skipped, so that nothing is divided by
    zero."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        out, mask = super().read(q, k, v, context), context.key_mask_BM
        return 0.0 * out if mask is not None and not bool(mask.any(-1).all()) else out


class FullIfTheFirstIs(Dense, law="ragged"):
    """The mask is dropped for a faster kernel where the last example is full: a look at one row."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        drop = mask is not None and len(mask) > 1 and bool(mask[-1].all())
        return super().permitted(logits, causal, None if drop else mask)


class QueriesMaskWhereItFits(Dense, law="two_masks", stranger=""):
    """The mask of the queries hides keys, wherever it has as many elements as there are keys."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        mask = context.query_mask_BN
        if mask is not None and mask.shape[1] == k.shape[2]:
            context = replace(context, key_mask_BM=mask)
        return super().read(q, k, v, context)


class OneMaskAtATime(Dense, law="two_masks", stranger=""):
    """Where queries are padded, the mask of another sequence is thought to be theirs and left
    out."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if context.query_mask_BN is not None and q.shape[2] != k.shape[2]:
            context = replace(context, key_mask_BM=None)
        return super().read(q, k, v, context)


class AnythingIsBoolean(Dense, law="mask_forms", stranger=""):
    """Masks of other types are made boolean: what was to be added to logits is read the wrong way
    round."""

    def forward(self, x_BND: Tensor, context: Context, **more: Any) -> Out:
        queries, keys = (
            None if mask is None else mask.bool()
            for mask in (context.query_mask_BN, context.key_mask_BM)
        )
        context = replace(context, query_mask_BN=queries, key_mask_BM=keys)
        return super().forward(x_BND, context, **more)


class OneMaskForAll(Dense, law="mask_forms", stranger=""):
    """A mask of one row is spread over all examples, which nobody asked for."""

    def forward(self, x_BND: Tensor, context: Context, **more: Any) -> Out:
        queries, keys = (
            mask.expand(len(x_BND), -1) if mask is not None and mask.dim() == 2 else mask
            for mask in (context.query_mask_BN, context.key_mask_BM)
        )
        context = replace(context, query_mask_BN=queries, key_mask_BM=keys)
        return super().forward(x_BND, context, **more)


class MaskReadByStrides(Dense, law="mask_forms"):
    """A kernel reads the mask as if its rows lay one behind the other."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        if mask is not None and len(mask) * mask.shape[1] <= mask.untyped_storage().nbytes():
            mask = torch.as_strided(mask, mask.shape, (mask.shape[1], 1), 0)
        return super().permitted(logits, causal, mask)
