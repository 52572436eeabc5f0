"""Faults of which keys are read, how often, and how they are weighed."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Context, Heads, split_heads
from lra.core.cards import Capabilities
from verify.faults.dense import Dense, card

WINDOW = Capabilities(bidirectional=True, causal="strict", padding="content")


class _Window(Dense):
    """Three keys to the left and none to the right, as its oracle and its support say."""

    card = card(softmax="never", capabilities=WINDOW)

    def support(self, n: int, m: int, context: Context) -> Tensor:
        return torch.ones(n, m, dtype=torch.bool).tril().triu(-3)

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        return softmax_oracle(q, k, v, context, self.support(q.shape[2], k.shape[2], context))


class OffByOneWindow(_Window, law="support", stranger=""):
    """The window is one key wider than it says."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        band = torch.ones(logits.shape[-2:], dtype=torch.bool).tril().triu(-4)
        return super().permitted(logits, causal, mask) & band


class WindowThatWraps(_Window, law="support", stranger="causality"):
    """The first queries read the end of the sequence (a roll without a mask)."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        n, m = logits.shape[-2:]
        back = (torch.arange(n)[:, None] - torch.arange(m)) % max(m, 1)
        return super().permitted(logits, False, mask) & (back <= 3)


class OracleShowsMore(_Window, law="support", stranger=""):
    """The oracle's output is right, and the weights it shows are those before the window."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        return super().permitted(logits, causal, mask) & self.support(*logits.shape[-2:], Context())

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        out, _ = super().oracle(q, k, v, context)
        return out, softmax_oracle(q, k, v, context)[1]


class OracleIsTheFastPath(Dense, law="oracle", stranger=""):
    """The oracle's output is what it is to be compared with."""

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        out, weights = super().oracle(q, k, v, context)
        return self.attend(q, k, v, context)[0].to(out.dtype), weights


class OracleIsTheFastPathOfItsClass(Dense, law="oracle", stranger=""):
    """The same, asked for in another way."""

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        out, weights = super().oracle(q, k, v, context)
        return super().attend(q, k, v, context)[0].to(out.dtype), weights


class KeysTwice(Dense, law="oracle", stranger=""):
    """The first key stands in every row's softmax twice, as global and as neighbour."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        logits = torch.cat([logits[..., :1] + math.log(2), logits[..., 1:]], dim=-1)
        return super().weights(logits, permitted)


class RootInverted(Dense, law="oracle", stranger=""):
    """Logits are multiplied by sqrt(K) where they should be divided."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT * math.sqrt(q.shape[-1])


class WrongGroupOrder(Dense, law="oracle", stranger=""):
    """Two heads share each key head, and the sharing is tiled: heads 0 and 2, not 0 and 1."""

    def prepare(self) -> None:
        self.groups = math.gcd(2, self.dims.heads)
        width = self.groups * self.dims.head_width
        self.key, self.value = nn.Linear(self.dims.width, width), nn.Linear(self.dims.width, width)

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        read = x if source is None else source
        q = split_heads(self.query(x), self.dims.heads)
        return Heads(q, *(split_heads(p(read), self.groups) for p in (self.key, self.value)))

    card = card(
        capabilities=Capabilities(
            bidirectional=True, causal="strict", cross=True, padding="content"
        )
    )

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        share = q.shape[1] // k.shape[1]
        return super().read(q, k.repeat(1, share, 1, 1), v.repeat(1, share, 1, 1), context)

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        share = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(share, dim=1) for x in (k, v))
        return softmax_oracle(q, k, v, context)


class MaskForgottenInCross(Dense, law="padding_content"):
    """Another sequence's padding is read: only the own one's mask is looked at."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if q.shape[2] != k.shape[2]:
            context = Context(context.causal, position=context.position)
        return super().read(q, k, v, context)
