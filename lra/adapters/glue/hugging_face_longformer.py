"""Hugging Face's Longformer: its model tells each layer what is masked and what is global.

B batch   N positions   D model width
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LongformerSelfAttention(nn.Module):
    """`transformers` LongformerSelfAttention without global positions, as for a plain input."""

    def __init__(
        self, width: int, heads: int, dropout: float, max_length: int, window: int = 512
    ) -> None:
        super().__init__()
        from transformers import LongformerConfig
        from transformers.models.longformer import modeling_longformer

        config = LongformerConfig(
            hidden_size=width,
            num_attention_heads=heads,
            attention_probs_dropout_prob=dropout,
            max_position_embeddings=max_length,
            attention_window=[window],
        )
        self.attention = modeling_longformer.LongformerSelfAttention(config, 0)

    def forward(self, x_BND: Tensor, mask: Tensor) -> Tensor:
        """Return (B, N, D); the mask is (B, N), True where attended to."""
        nowhere_BN = torch.zeros_like(mask)
        out: Tensor = self.attention(
            x_BND,
            attention_mask=torch.where(mask, 0.0, -10000.0).to(x_BND.dtype),
            is_index_masked=~mask,
            is_index_global_attn=nowhere_BN,
            is_global_attn=False,
        )[0]
        return out
