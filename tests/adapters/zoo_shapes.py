"""Shapes that other people's attention comes in, beside those of `zoo`; each is honest but for the
last.

B batch   N queries   M keys   D model width   H heads   K width of a head
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from zoo import Keeps, Plain, softmax
from zoo_configured import LocalConfig


def turned(x_BHNK: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    first, second = x_BHNK.chunk(2, -1)
    return x_BHNK * cosines[:, None] + torch.cat([-second, first], -1) * sines[:, None]


class Rotated(Plain):
    """Turns queries and keys by tables that the model around it keeps."""

    def __init__(self, config: LocalConfig, layer_idx: int) -> None:
        super().__init__(config.hidden_size, config.num_attention_heads)

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor] | None = None,
        attention_mask: Tensor | None = None,
        **_: Any,
    ) -> tuple[Tensor, None]:
        assert position_embeddings is not None
        keep = None if attention_mask is None else attention_mask == 0
        return self.rotated(hidden_states, *position_embeddings, keep), None

    def rotated(self, x: Tensor, cos: Tensor, sin: Tensor, keep: Tensor | None) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        out = softmax(turned(q, cos, sin), turned(k, cos, sin), v, keep)
        y: Tensor = self.out(out.transpose(1, 2).flatten(2))
        return y


class RotatedApart(Rotated):
    """The two tables apart, both needed."""

    def __init__(self, dim: int, heads: int) -> None:
        Plain.__init__(self, dim, heads)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # type: ignore[override]
        return self.rotated(x, cos, sin, None)


class AddsPositions(Keeps):
    """A tensor of the same name that is added, and may be left out."""

    def forward(  # type: ignore[override]
        self, x: Tensor, position_embeddings: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        assert position_embeddings is None
        return super().forward(x, mask)


class SizesAndConfig(Keeps):
    """Sizes of its own beside a configuration, which has no default but None; of its flag it makes
    no use, since masks decide."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        is_causal: bool = False,
        config: LocalConfig | None = None,
        layer_idx: int | None = None,
    ) -> None:
        super().__init__(embed_dim, num_heads)
        assert config is not None and config.hidden_size == embed_dim and layer_idx is not None
        self.power = config.power

    def forward(self, hidden_states: Tensor, attention_mask: Any = None) -> Any:  # type: ignore[override]
        keep = None if attention_mask is None else attention_mask == 0
        return (self.attend(hidden_states, keep=keep) * self.power,)


class SizesBesideConfig(Plain):
    """Widths that default to None and are needed, beside a configuration that has others."""

    def __init__(self, config, rank: int = 2, num_heads: int = 1, q_dim=None, kv_dim=None) -> None:
        assert q_dim == kv_dim
        super().__init__(q_dim, num_heads)
        self.rank = rank

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        inputs: Tensor | None = None,
        inputs_mask: Tensor | None = None,
    ) -> tuple[Tensor]:
        mask = attention_mask if inputs is None else inputs_mask
        return (self.attend(hidden_states, inputs, None if mask is None else mask == 0),)


@dataclass
class NeedsSizes:
    d_model: int
    n_layers: int
    encoder_attention_heads: int
    power: float = 1.0


class NeedyConfiguration(Keeps):
    """Its configuration has sizes without a default, one of them by an encoder's name."""

    def __init__(self, config: NeedsSizes) -> None:
        super().__init__(config.d_model, config.encoder_attention_heads)
        assert config.n_layers == 1


class QueryWidth(Keeps):
    """Its width is that of its queries."""

    def __init__(self, query_dim: int, heads: int = 8, dim_head: int = 64) -> None:
        super().__init__(query_dim, heads)
        assert dim_head * heads == query_dim


class ByKeyword(Plain):
    """Takes all that it takes by keyword."""

    def __init__(self, heads: int, d_model: int) -> None:
        super().__init__(d_model, heads)

    def forward(self, *, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        assert key is value
        return self.attend(query, key, None if mask is None else mask[:, None, None, :])


class TwinFails(Plain):
    """Its causal form asks for more than its sizes."""

    def __init__(self, dim: int, heads: int, causal: bool = False, window: int = 0) -> None:
        assert not causal or window, "a causal one needs a window"
        super().__init__(dim, heads)

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(x)


class Unnamed(nn.Module):
    """Sizes of no known name."""

    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.inner = Plain(channels, groups)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner.attend(x)


class GroupSizes:
    """Four heads share one of keys."""

    def __init__(
        self, hidden_size: int = 64, num_attention_heads: int = 32, num_key_value_heads: int = 8
    ) -> None:
        self.hidden_size, self.heads = hidden_size, num_attention_heads
        self.key_heads = num_key_value_heads


class Grouped(Keeps):
    """Fewer heads of keys than of queries, as its configuration says."""

    def __init__(self, config: GroupSizes) -> None:
        super().__init__(config.hidden_size, config.heads)
        assert config.heads % config.key_heads == 0
        self.key_heads = config.key_heads


class AssertsInSilence(Keeps):
    """Pytest puts words into the assertions of tests, but not into those of this file."""

    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        assert x.shape[-1] % 3 == 0
        return super().forward(x, mask)
