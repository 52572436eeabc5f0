"""Hugging Face's BigBird: its model cuts one mask into the five that each layer wants.

B batch   N positions   D model width
"""

from __future__ import annotations

from torch import Tensor, nn


class BigBirdBlockSparseAttention(nn.Module):
    """`transformers` BigBirdBlockSparseAttention."""

    def __init__(
        self,
        width: int,
        heads: int,
        dropout: float,
        max_length: int,
        block_size: int = 64,
        random_blocks: int = 3,
    ) -> None:
        super().__init__()
        from transformers import BigBirdConfig
        from transformers.models.big_bird import modeling_big_bird

        config = BigBirdConfig(
            hidden_size=width,
            num_attention_heads=heads,
            attention_probs_dropout_prob=dropout,
            max_position_embeddings=max_length,
            block_size=block_size,
            num_random_blocks=random_blocks,
        )
        self._block_size = block_size
        self._masks = modeling_big_bird.BigBirdModel.create_masks_for_block_sparse_attn
        self.attention = modeling_big_bird.BigBirdBlockSparseAttention(config, seed=0)

    def forward(self, x_BND: Tensor, mask: Tensor) -> Tensor:
        """Return (B, N, D); the mask is (B, N), True where attended to."""
        blocked, band, source, target = self._masks(mask.to(x_BND.dtype), self._block_size)
        out: Tensor = self.attention(x_BND, band, source, target, blocked, blocked)[0]
        return out
