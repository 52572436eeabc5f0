"""Hugging Face's Nystromformer: its model takes one length alone, a multiple of its landmarks.

B batch   N positions   D model width
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class NystromformerSelfAttention(nn.Module):
    """`transformers` NystromformerSelfAttention, inputs padded to the length it is built for."""

    def __init__(
        self, width: int, heads: int, dropout: float, max_length: int, num_landmarks: int = 64
    ) -> None:
        super().__init__()
        from transformers import NystromformerConfig
        from transformers.models.nystromformer import modeling_nystromformer

        self._length = max_length + -max_length % num_landmarks
        config = NystromformerConfig(
            hidden_size=width,
            num_attention_heads=heads,
            attention_probs_dropout_prob=dropout,
            max_position_embeddings=self._length,
            segment_means_seq_len=self._length,
            num_landmarks=num_landmarks,
        )
        self.attention = modeling_nystromformer.NystromformerSelfAttention(config)

    def forward(self, x_BND: Tensor, mask: Tensor) -> Tensor:
        """Return (B, N, D); the mask is (B, N), True where attended to."""
        missing = self._length - x_BND.shape[1]
        x_BND = F.pad(x_BND, (0, 0, 0, missing))
        real_BN = F.pad(mask, (0, missing))
        lowest = torch.finfo(x_BND.dtype).min
        added = torch.zeros_like(x_BND[..., 0]).masked_fill(~real_BN, lowest)
        out: Tensor = self.attention(x_BND, added[:, None, None, :])[0]
        return out[:, : mask.shape[1]]
