"""The encoder: embedding, blocks, final norm, and pooling to one vector per sequence, or none.

B sequences, N positions, D model width
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from attention_impls.contract import Context
from lra.core.protocol import Rules
from lra.models.block import NORM_EPSILON, Block
from lra.models.embedding import Embedding

Pooling = Literal["cls", "mean", "first", "none"]


class Encoder(nn.Module):
    """Sequences to vectors: (B, N) token ids to (B, D), or to (B, N, D) without pooling.

    `shared` holds parameters that all the mechanism's layers use, registered here so that they are
    trained and counted once. With `recompute`, training keeps only a block's input and computes the
    block again on the way back.
    """

    recompute: bool = False

    def __init__(
        self,
        embedding: Embedding,
        blocks: Sequence[Block],
        *,
        width: int,
        pooling: Pooling,
        rules: Rules,
        causal: bool,
        shared: nn.Module | None,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.shared = shared
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.pooling = pooling
        self.rules = rules
        self.causal = causal

    def forward(self, tokens_BN: Tensor, mask_BN: Tensor | None) -> Tensor:
        """Return the pooled vectors, (B, D); without pooling the vectors of all positions, (B, N,
        D)."""
        x_BND, mask_BN = self.embedding(tokens_BN, mask_BN)
        context = self._context(mask_BN)
        for block in self.blocks:
            if self.recompute and torch.is_grad_enabled():
                x_BND = checkpoint(block, x_BND, context, use_reentrant=False)
            else:
                x_BND = block(x_BND, context)
        y_BND: Tensor = self.norm(x_BND)
        if self.pooling == "none":
            return y_BND
        if self.pooling != "mean":
            return y_BND[:, 0]
        return mean(y_BND, None if self.rules == "lra2021" else mask_BN)

    def init_states(self, batch: int, *, length: int) -> list[Any]:
        """Return each block's empty decode state, for up to `length` positions."""
        weight = self.embedding.tokens.weight
        return [
            block.mechanism.init_state(
                batch, length=length, device=weight.device, dtype=weight.dtype
            )
            for block in cast(Iterable[Block], self.blocks)
        ]

    def step(
        self, tokens_BN: Tensor, first: int, states: Sequence[Any]
    ) -> tuple[Tensor, list[Any]]:
        """Return the vectors of positions from `first` on, (B, N, D), and the states after them.

        For causal encoders without pooling; all tokens are real.
        """
        x_BND, _ = self.embedding(tokens_BN, None, first=first)
        context, after = self._context(None), []
        for block, state in zip(cast(Iterable[Block], self.blocks), states, strict=True):
            x_BND, state = block.step(x_BND, context, state)
            after.append(state)
        return self.norm(x_BND), after

    def _context(self, mask_BN: Tensor | None) -> Context:
        position = self.embedding.position
        inside = position.card.acts_on in ("queries-keys", "logits")
        return Context(
            causal=self.causal,
            query_mask_BN=mask_BN,
            key_mask_BM=mask_BN,
            position=position if inside else None,
        )


def mean(x_BND: Tensor, mask_BN: Tensor | None) -> Tensor:
    """Return the mean over real positions, (B, D); zero for a sequence that has none."""
    if mask_BN is None:
        return x_BND.mean(dim=1)
    total_BD = x_BND.masked_fill(~mask_BN.unsqueeze(-1), 0.0).sum(dim=1)
    return total_BD / mask_BN.sum(dim=1, keepdim=True).clamp(min=1)
