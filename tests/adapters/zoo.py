"""Other people's attention, in plain torch and in the shapes that it comes in; each is honest.

B batch   N queries   M keys   D model width   H heads   K width of a head
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lra.adapters.xformers import Attention, AttentionConfig, register_attention

LOWEST = torch.finfo(torch.float32).min


def softmax(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None = None) -> Tensor:
    """Softmax attention that gives zero where nothing is kept."""
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if keep is not None:
        scores = scores.masked_fill(~keep, LOWEST)
    weights = scores.softmax(-1)
    if keep is not None:
        weights = weights * keep
    return weights @ v


def triangle(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril()


def bare_function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return softmax(q, k, v)


def function_of_pairs(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None) -> Tensor:
    return softmax(query, key, value, attn_mask)


def needs_its_mask(v: Tensor, k: Tensor, q: Tensor, mask: Tensor) -> Tensor:
    """In another order, and never without a mask."""
    return softmax(q, k, v, mask[:, None, None, :])


class CausalCore(nn.Module):
    def __init__(self, dim_head: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((dim_head,), 0.5))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Any = None, causal: bool = False):
        keep = None if mask is None else mask[:, None, None, :]
        if causal:
            keep = triangle(q.shape[2]) if keep is None else keep & triangle(q.shape[2])
        return softmax(q * self.scale, k, v, keep)


class Capitals(CausalCore):
    def __init__(self, Dim_Head: int) -> None:
        super().__init__(Dim_Head)

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, Mask: Any = None, Causal: bool = False):
        return super().forward(Q, K, V, Mask, Causal)


class Plain(nn.Module):
    """One set of projections; what follows differs in how it is asked."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def attend(self, x: Tensor, source: Tensor | None = None, keep: Any = None) -> Tensor:
        heads = [
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in F.linear(x, *self.part(0)).split(x.shape[-1], -1)
            + F.linear(x if source is None else source, *self.part(1)).chunk(2, -1)
        ]
        return self.out(softmax(*heads, keep).transpose(1, 2).flatten(2))

    def part(self, which: int) -> tuple[Tensor, Tensor]:
        width = self.qkv.in_features
        here = slice(0, width) if which == 0 else slice(width, None)
        return self.qkv.weight[here], self.qkv.bias[here]


class Keeps(Plain):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.attend(x, keep=None if mask is None else mask[:, None, None, :])


class Ignores(Plain):
    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> tuple[Tensor, None]:
        """Also returns a tuple."""
        keep = None if padding_mask is None else ~padding_mask[:, None, None, :]
        return self.attend(x, keep=keep), None


class IgnoresInWords(nn.Module):
    """Called with whole words in capitals, of which the mask means what its small one does."""

    def forward(self, Query: Tensor, Key: Tensor, Value: Tensor, Key_Padding_Mask: Any = None):
        keep = None if Key_Padding_Mask is None else ~Key_Padding_Mask[:, None, None, :]
        return softmax(Query, Key, Value, keep)


class BuiltCausal(Plain):
    def __init__(self, d_model: int, n_heads: int, causal: bool = False) -> None:
        super().__init__(d_model, n_heads)
        self.is_causal = causal

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(x, keep=triangle(x.shape[1]) if self.is_causal else None)


class ReadsContext(Plain):
    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
    ) -> Tensor:
        keep = mask if context is None else context_mask
        return self.attend(x, context, None if keep is None else keep[:, None, None, :])


class OneMaskForTwo(Plain):
    def forward(self, x: Tensor, context: Any = None, mask: Any = None) -> Tensor:
        return self.attend(x, context, None if mask is None else mask[:, None, None, :])


class HandsOn(Keeps):
    """Names nothing of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return super().forward(*args, **kwargs)


class Configurable(Keeps):
    def __init__(self, dim: int, heads: int, power: float, bend: bool = False) -> None:
        super().__init__(dim, heads)
        self.power = power

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x, mask) * self.power


class MultiHead(nn.MultiheadAttention):
    """torch's own."""


class SelfMultiHead(nn.MultiheadAttention):
    """Attends to its input alone."""

    def forward(self, x: Tensor, **options: Any) -> Any:  # type: ignore[override]
        return super().forward(x, x, x, **options)


@dataclass
class RegisteredConfig(AttentionConfig):
    causal: bool | None
    dim_head: int | None
    gain: float | None


@register_attention("registered", RegisteredConfig)
class Registered(Attention):
    """With heads folded into the batch."""

    def __init__(
        self, dim_head: int, dropout: float = 0.5, causal: bool = False, gain: float = 2.0,
        *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.causal = causal
        self.gain = nn.Parameter(torch.full((dim_head,), gain))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, att_mask: Any = None, *_: Any, **__: Any):
        assert q.ndim == 3
        if self.causal:
            ahead = triangle(q.shape[1])
            att_mask = ahead if att_mask is None else att_mask & ahead
        return softmax(q, k, v * self.gain, att_mask)


class TheirBase(nn.Module):
    requires_head_dimension = True

    @classmethod
    def from_config(cls, config: Any) -> Any:
        raise NotImplementedError


class Component(TheirBase):
    """Shaped like one of the registry, with a base of its own and heads apart."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()

    def forward(self, q: Tensor, k: Tensor, v: Tensor, key_padding_mask: Any = None) -> Tensor:
        assert q.ndim == 4
        keep = None if key_padding_mask is None else key_padding_mask[:, None, None, :]
        return softmax(q, k, v, keep)


class DeniesItsMask(Registered):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.supports_attention_mask = False


class BringsItsHeads(Attention):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.requires_skip_multi_head = True

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return v


class Recurrent(nn.Module):
    """Shares an LSTM's parameters, which torch keeps in a list too; causal by construction."""

    def __init__(self, dim: int, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.lstm = nn.LSTM(dim, dim, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        forward = self.lstm(x)[0]
        return forward if self.causal else forward + self.lstm(x.flip(1))[0].flip(1)
