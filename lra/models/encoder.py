"""The encoder: embedding, blocks, final norm, and pooling to one vector per sequence.

B sequences, N positions, D model width
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from attention_impls.contract import Context
from lra.core.protocol import Rules
from lra.models.block import NORM_EPSILON, Block
from lra.models.embedding import Embedding

Pooling = Literal["cls", "mean", "first"]


class Encoder(nn.Module):
    """Sequences to vectors, (B, N) token ids to (B, D).

    `shared` holds parameters that all the mechanism's layers use, registered here so that they
    are trained and counted once.
    """

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
        """Return the pooled vectors, (B, D)."""
        x_BND, mask_BN = self.embedding(tokens_BN, mask_BN)
        position = self.embedding.position
        inside = position.card.acts_on in ("queries-keys", "logits")
        context = Context(
            causal=self.causal,
            query_mask_BN=mask_BN,
            key_mask_BM=mask_BN,
            position=position if inside else None,
        )
        for block in self.blocks:
            x_BND = block(x_BND, context)
        y_BND: Tensor = self.norm(x_BND)
        if self.pooling != "mean":
            return y_BND[:, 0]
        return mean(y_BND, None if self.rules == "lra2021" else mask_BN)


def mean(x_BND: Tensor, mask_BN: Tensor | None) -> Tensor:
    """Return the mean over real positions, (B, D); zero for a sequence that has none."""
    if mask_BN is None:
        return x_BND.mean(dim=1)
    total_BD = x_BND.masked_fill(~mask_BN.unsqueeze(-1), 0.0).sum(dim=1)
    return total_BD / mask_BN.sum(dim=1, keepdim=True).clamp(min=1)
