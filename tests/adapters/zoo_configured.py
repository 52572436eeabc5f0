"""Attention built from a configuration object that is defined beside it."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from zoo import Keeps, Plain


class LocalConfig:
    """As in a model's own file, beside what is built from it."""

    def __init__(
        self,
        hidden_size: int = 64,
        num_attention_heads: int = 4,
        attention_probs_dropout_prob: float = 0.1,
        power: float = 1.0,
    ) -> None:
        self.hidden_size = hidden_size
        self.num_attention_heads = num_attention_heads
        self.dropout = attention_probs_dropout_prob
        self.power = power


class Local(Plain):
    def __init__(self, config, layer_idx=None):
        super().__init__(config.hidden_size, config.num_attention_heads)
        self.power = config.power
        assert layer_idx is not None

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Any:
        keep = None
        if attention_mask is not None:
            assert attention_mask.is_floating_point() and attention_mask.ndim == 4
            keep = attention_mask == 0
        return (self.attend(hidden_states, keep=keep) * self.power,)


class Annotated(Local):
    def __init__(self, config: LocalConfig):
        super().__init__(config, 0)


class OfAnInput(Keeps):
    def __init__(self, config: LocalConfig):
        super().__init__(config.hidden_size, config.num_attention_heads)
