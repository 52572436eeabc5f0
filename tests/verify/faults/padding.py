"""Faults of padding, of empty rows and of batches."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attention_impls.contract import Context, Out, zero_padding
from verify.faults.dense import Dense, card


class PaddingInTheSum(Dense, law="padding_count", stranger="causality"):
    """Padded keys are left out of the numerator and counted in the denominator."""

    card = card(weights="free", softmax="never")

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        largest = logits.amax(-1, keepdim=True)
        exponentials = (logits - largest).exp()
        return exponentials * permitted / exponentials.sum(-1, keepdim=True)


class FiniteFill(Dense, law="empty_rows"):
    """Masked logits are set to -10000, so that a row of nothing else attends to all of it."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        return logits.masked_fill(~permitted, -1e4).softmax(-1)


class VectorOnEmptyRows(Dense, law="empty_rows"):
    """A row with nothing to attend to gets a learned vector."""

    def prepare(self) -> None:
        self.nothing = nn.Parameter(torch.ones(self.dims.head_width))

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        out = super().read(q, k, v, context)
        return torch.where((out == 0).all(-1, keepdim=True), self.nothing, out)


class NotANumberOnEmptyRows(Dense, law="empty_rows"):
    """A row with nothing to attend to is a softmax over minus infinity alone."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        return logits.masked_fill(~permitted, -torch.inf).softmax(-1)


class EmptySourceNotANumber(Dense, law="empty_rows"):
    """Another sequence that is padding alone is not thought of; the own one is."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        if logits.shape[-1] == logits.shape[-2]:
            return super().weights(logits, permitted)
        return logits.masked_fill(~permitted, -torch.inf).softmax(-1)


class ReadsItselfWhereNothingIs(Dense, law="empty_inputs", stranger=""):
    """Without a source the queries are handed back."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        return super().read(q, k, v, context) if k.shape[2] else q


class MaskIgnored(Dense, law="padding_content"):
    """The mask is accepted and never read."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        return super().permitted(logits, causal, None)


class QueriesTakenForKeys(Dense, law="oracle", stranger="cross"):
    """Rows are zeroed by the mask of the keys, wherever there are as many of both."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        out = super().read(q, k, v, context)
        mask = context.key_mask_BM
        if mask is not None and mask.shape[1] == q.shape[2]:
            out = out * mask[:, None, :, None]
        return out


class _Skip(Dense):
    """Something of the inputs goes past the attention, before their padding is zeroed."""

    card = card(softmax="never")

    def past(self, x: Tensor, mask: Tensor | None) -> Tensor:
        raise NotImplementedError

    def forward(self, x_BND: Tensor, context: Context, **more: Any) -> Out:
        out, mask = super().forward(x_BND, context, **more), context.query_mask_BN
        past = self.past(x_BND, mask).expand_as(x_BND)
        return out._replace(y_BND=out.y_BND + zero_padding(past, mask))


class MeanOfPadding(_Skip, law="empty_rows", stranger=""):
    """A mean over the inputs counts those that are padding."""

    def past(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return x.mean(1, keepdim=True)


class ZeroedByMultiplication(_Skip, law="padding_content", stranger=""):
    """Padding is multiplied by zero, which leaves what is not a number."""

    def past(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return (x if mask is None else x * mask.unsqueeze(-1)).mean(1, keepdim=True)


class ShiftsPadding(Dense, law="padding_content", stranger=""):
    """A shift is added at the very end, to padding too."""

    card = card(softmax="never")

    def forward(self, x_BND: Tensor, context: Context, **more: Any) -> Out:
        out = super().forward(x_BND, context, **more)
        return out._replace(y_BND=out.y_BND + 0.1)


class SortedByMultiplication(Dense, law="batch"):
    """Examples are put into another order and back by matrices of ones and zeros."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        out = super().read(q, k, v, context)
        order = torch.eye(len(out), dtype=out.dtype).flip(0)
        return torch.einsum("ab,bc,chnv->ahnv", order.mT, order, out)


class BatchNormaliser(Dense, law="batch"):
    """Logits are divided by the largest of the whole batch."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        return logits / (1e-6 + logits.abs().amax()) if logits.numel() else logits


class BatchMinimumPruning(Dense, law="batch"):
    """All examples keep as many keys as the one with the fewest real ones."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        permitted = super().permitted(logits, causal, mask)
        if mask is None or not mask.numel():
            return permitted
        fewest = mask.sum(-1).amin()
        return permitted & (mask.cumsum(-1) <= fewest)[:, None, None, :]


class RaggedTruncated(Dense, law="oracle", stranger="causality"):
    """Works in blocks of 16 and forgets what is left over."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        out = super().read(q, k, v, context)
        whole = q.shape[2] // 16 * 16
        return torch.cat([out[:, :, :whole], torch.zeros_like(out[:, :, whole:])], dim=2)
