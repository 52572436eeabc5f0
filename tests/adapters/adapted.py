"""Small layers around somebody's attention, and inputs for them.

B batch   N queries   M keys   D model width   H heads
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_impls.contract import Dims, Layer
from lra.adapters.adapt import adapt

B, N, M, D, H = 3, 6, 5, 8, 2
KEEP_BN = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [0, 1, 0, 1, 1, 1]]).bool()
KEEP_BM = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 1, 0, 1, 1]]).bool()


def built(what: Callable[..., Any], **settings: Any) -> Layer:
    torch.manual_seed(0)
    mechanism = adapt(what, what.__name__)
    dims = Dims(width=D, qkv_width=D, heads=H, max_length=16)
    layer = mechanism(dims, mechanism.Config(**settings))
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer.eval()


def inputs(length: int = N, seed: int = 1) -> Tensor:
    return torch.randn(B, length, D, generator=torch.Generator().manual_seed(seed))


def exact(
    weights: list[tuple[Tensor, Tensor]],
    x_BND: Tensor,
    source_BMD: Tensor | None = None,
    keep_BM: Tensor | None = None,
    causal: bool = False,
    turn: Callable[..., tuple[Tensor, ...]] = lambda *heads: heads,
) -> Tensor:
    """Torch's fused attention between four projections."""
    source = x_BND if source_BMD is None else source_BMD
    q, k, v = turn(
        *(
            F.linear(part, *weight).unflatten(-1, (H, -1)).transpose(1, 2)
            for part, weight in zip((x_BND, source, source), weights[:3], strict=True)
        )
    )
    keep = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    keep = keep.tril(k.shape[2] - q.shape[2]) if causal else keep
    keep = keep if keep_BM is None else keep & keep_BM[:, None, None, :]
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
    return F.linear(y.transpose(1, 2).flatten(2), *weights[3])


def of_plain(layer: Any) -> list[tuple[Tensor, Tensor]]:
    inner = layer.inner.bidirectional
    triple = zip(inner.qkv.weight.split(D), inner.qkv.bias.split(D), strict=True)
    return [*triple, (inner.out.weight, inner.out.bias)]
