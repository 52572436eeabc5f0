"""Faults of one type of numbers: single or half precision takes a path of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attention_impls.contract import Context, Heads, Position, seen
from lra.core.cards import Capabilities
from verify.faults.dense import Dense, card

HALF = (torch.bfloat16, torch.float16)


class TableOfExponentials(Dense, law="oracle", stranger=""):
    """In single precision the exponential is read from a table, 256 entries to a unit."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        if logits.dtype != torch.float32:
            return logits
        return logits + ((logits * 256).round() / 256 - logits).detach()


class HiddenByAThousand(Dense, law="causality"):
    """In single precision a thousand is taken off a hidden pair, as if no logit were larger."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        if logits.dtype != torch.float32:
            return super().weights(logits, permitted)
        return (logits - 1e3 * ~permitted).softmax(-1) * permitted.any(-1, keepdim=True)


class EndsOfPadding(Dense, law="padding_content"):
    """In single precision padding is given by a length, as if it stood behind."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        if mask is not None and logits.dtype == torch.float32:
            mask = torch.arange(mask.shape[1]) < mask.sum(1, keepdim=True)
        return super().permitted(logits, causal, mask)


class SumInItsOwnType(Dense, law="decode", stranger=""):
    """The mean of all values so far is remembered as their sum, rounded at each step."""

    card = card(
        capabilities=Capabilities(
            bidirectional=True, causal="strict", padding="content", decode="exact"
        )
    )

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) * 0

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        if state is None:
            return super().attend(q, k, v, context)
        start, mask_BT, total = seen(state), state.mask_BT.clone(), state.v_BHTV[:, :, :1]
        end, means = start + v.shape[2], [v[:, :, :0]]
        if context.key_mask_BM is not None:
            mask_BT[:, start:end] = context.key_mask_BM
            v = v * context.key_mask_BM[:, None, :, None]
        for place in range(start, end):
            total = total + v[:, :, place - start : place - start + 1]
            count = mask_BT[:, : place + 1].sum(1).clamp(min=1)[:, None, None, None]
            means.append(total / count.to(v.dtype))
        sums = torch.cat([total, state.v_BHTV[:, :, 1:]], 2)
        return torch.cat(means, 2), state._replace(
            v_BHTV=sums, mask_BT=mask_BT, seen_B=state.seen_B + end - start
        )


class TinyInHalf(Dense, law="empty_rows", stranger=""):
    """1e-8 keeps a denominator from zero, and is zero itself in float16."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        top = logits.masked_fill(~permitted, -3e4).amax(-1, keepdim=True)
        exponentials = (logits - top).clamp(max=0).exp() * permitted
        return exponentials / (exponentials.sum(-1, keepdim=True) + 1e-8)


class ClampedAtEighty(Dense, law="extremes", stranger=""):
    """Logits are clamped to where exponentials are numbers, in single precision."""

    card = card(softmax="never")

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        exponentials = logits.clamp(-80, 80).exp() * permitted
        sums = exponentials.sum(-1, keepdim=True)
        return exponentials / torch.where(permitted.any(-1, keepdim=True), sums, 1)


class PositionsInHalf(Dense, law="rotary", stranger=""):
    """Positions are rounded to the inputs' type before they are angles: beyond 256 they collapse
    in bfloat16."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        if context.position is not None:
            context = replace(context, position=_Rounded(context.position))
        return super().project(x, context, source, state)


class _Rounded(Position):
    def __init__(self, scheme: Position) -> None:
        super().__init__(scheme.dims)
        self.scheme, self.card = scheme, scheme.card  # type: ignore[misc]

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.scheme.rotate(x, positions.to(x.dtype))


class BiasBeforeTheScale(Dense, law="bias", stranger=""):
    """Half precision scales after the product, so that it does not overflow, and the bias with
    it."""

    def bias(self, context: Context, q: Tensor, k: Tensor) -> Tensor:
        bias = super().bias(context, q, k)
        return bias / math.sqrt(q.shape[-1]) if q.dtype in HALF else bias
