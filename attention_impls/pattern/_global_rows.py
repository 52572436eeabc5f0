"""Global rows: positions that read all others, by projections of their own.

B batch   N positions   D model width   H heads   K width of a query or key head
V width of a value head   G global positions

Keys and values of all positions are never formed for so few readers. With k_j = W x_j + b a logit
is q . k_j = (W^T q) . x_j + q . b, and the output, for weights p and v_j = W x_j + b, is
W (p^T x) + (sum p) b: a global row costs N D for each head, and nobody pays N D^2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import default_scale, split_heads


class Projections(NamedTuple):
    """How global rows make queries, keys and values of the input."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear


def copied(linear: nn.Linear) -> nn.Linear:
    """Return a projection of its own that starts as a copy."""
    copy = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None)
    copy.load_state_dict(linear.state_dict())
    return copy


def read_all(
    x_BND: Tensor,
    places_BG: Tensor,
    key_mask_BM: Tensor | None,
    by: Projections,
    *,
    heads: int,
    dropout: float,
) -> Tensor:
    """Return the attention of some positions over all others, (B, H, G, V), in float32 or better.

    A position that no key is left to gives zero.
    """
    precise = torch.promote_types(x_BND.dtype, torch.float32)
    width = by.query.out_features // heads
    with torch.autocast(x_BND.device.type, enabled=False):
        x = x_BND.to(precise)
        own_BGD = x.gather(1, places_BG.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        q = split_heads(_linear(by.query, own_BGD), heads)
        key_HKD = by.key.weight.to(precise).view(heads, width, -1)
        logits_BHGN = torch.einsum("bhgd,bnd->bhgn", q @ key_HKD, x)
        if by.key.bias is not None:
            bias_HK1 = by.key.bias.to(precise).view(heads, width, 1)
            logits_BHGN = logits_BHGN + q @ bias_HK1
        logits_BHGN = logits_BHGN * default_scale(width)
        none_BHG1 = None
        if key_mask_BM is not None:
            none_BHG1 = ~key_mask_BM.any(dim=-1)[:, None, None, None]
            hidden = ~key_mask_BM[:, None, None, :] & ~none_BHG1
            logits_BHGN = logits_BHGN.masked_fill(hidden, -math.inf)
        weights_BHGN = logits_BHGN.softmax(dim=-1)
        if none_BHG1 is not None:
            weights_BHGN = weights_BHGN.masked_fill(none_BHG1, 0.0)
        weights_BHGN = F.dropout(weights_BHGN, dropout, training=dropout > 0.0)
        mixed_BHGD = torch.einsum("bhgn,bnd->bhgd", weights_BHGN, x)
        value_HVD = by.value.weight.to(precise).view(heads, width, -1)
        out_BHGV = mixed_BHGD @ value_HVD.mT
        if by.value.bias is None:
            return out_BHGV
        bias_HV = by.value.bias.to(precise).view(heads, 1, width)
        return out_BHGV + weights_BHGN.sum(dim=-1, keepdim=True) * bias_HV


def _linear(linear: nn.Linear, x: Tensor) -> Tensor:
    """Apply a projection in the dtype of x."""
    bias = None if linear.bias is None else linear.bias.to(x.dtype)
    return F.linear(x, linear.weight.to(x.dtype), bias)
