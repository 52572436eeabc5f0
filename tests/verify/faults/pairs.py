"""Faults of a mask of pairs: where it lies, where it is forgotten, and what stands in its way."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context
from verify.faults.dense import Dense, card


class Paired(Dense):
    """Honours a mask of pairs; nothing is wrong with it."""

    card = card(capabilities=msgspec.structs.replace(Dense.card.capabilities, arbitrary_mask=True))

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        logits = self.logits(q, k) + self.bias(context, q, k)
        permitted = self.permitted(logits, context.causal, context.key_mask_BM)
        weights = self.weights(logits, permitted & self.pairs(permitted, context))
        return self.dropped(weights) @ v

    def pairs(self, permitted: Tensor, context: Context) -> Tensor:
        if context.mask_BNM is None:
            return torch.ones_like(permitted)
        return context.mask_BNM.unsqueeze(1).expand_as(permitted)


class PairsTransposed(Paired, law="arbitrary_mask", stranger=""):
    """Reads from key to query."""

    def pairs(self, permitted: Tensor, context: Context) -> Tensor:
        pairs = super().pairs(permitted, context)
        return pairs.mT if pairs.shape[-1] == pairs.shape[-2] else pairs


class PairsOfTheFirstExample(Paired, law="arbitrary_mask", stranger=""):
    """Takes one mask for the whole batch."""

    def pairs(self, permitted: Tensor, context: Context) -> Tensor:
        return super().pairs(permitted, context)[:1]


class PairsAfterTheSoftmax(Paired, law="arbitrary_mask", stranger=""):
    """Weights of hidden pairs are set to zero when all have been shared out."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        logits = self.logits(q, k) + self.bias(context, q, k)
        permitted = self.permitted(logits, context.causal, context.key_mask_BM)
        weights = self.weights(logits, permitted) * self.pairs(permitted, context)
        return self.dropped(weights) @ v


class PairsForgottenBackwards(Paired, law="arbitrary_mask", stranger=""):
    """The backward pass makes its weights again, without the mask."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        found = super().read(q, k, v, context)
        again = super().read(q, k, v, replace(context, mask_BNM=None))
        return again + (found - again).detach()


class PairsAllHidden(Paired, law="arbitrary_mask", stranger=""):
    """Hidden logits are minus infinity, also where a query has no others."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        return logits.masked_fill(~permitted, -torch.inf).softmax(-1)


class PairsHiddenByALargeNumber(Paired, law="arbitrary_mask", stranger=""):
    """Hidden logits are -10000, so that a query with no others attends to all."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        return logits.masked_fill(~permitted, -1e4).softmax(-1)


class PairsForCausality(Paired, law="arbitrary_mask", stranger=""):
    """Where there is a mask, it is taken to say what is causal."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if context.mask_BNM is not None and context.position is None:
            context = replace(context, causal=False)
        return super().read(q, k, v, context)


class PairsForgottenByName(Paired, law="arbitrary_mask", stranger=""):
    """Plain causal attention is asked for by name, which leaves a mask behind."""

    def pairs(self, permitted: Tensor, context: Context) -> Tensor:
        named = context.causal and context.key_mask_BM is None and context.position is None
        return super().pairs(permitted, replace(context, mask_BNM=None) if named else context)


class PairsForPadding(Paired, law="arbitrary_mask", stranger=""):
    """Another sequence is masked by pairs or by padding, by the first that is there."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if context.mask_BNM is not None and q.shape[2] != k.shape[2]:
            context = replace(context, key_mask_BM=None)
        return super().read(q, k, v, context)


class PairsForgottenUnderDropout(Paired, law="arbitrary_mask", stranger=""):
    """A kernel with dropout is called that takes no mask."""

    def pairs(self, permitted: Tensor, context: Context) -> Tensor:
        drops = self.training and self.dims.dropout
        return super().pairs(permitted, replace(context, mask_BNM=None) if drops else context)
