"""One round of the Reformer's attention: sort by bucket, attend in chunks, put back.

B batch   N positions   H heads   K width of a query or key head   V width of a value head
U chunks   S positions in a chunk   X = 2 S keys that a chunk reads
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context

SELF = 1e5
"""Taken off the logit of a position with itself, in float32: it reads itself only where it reads
nothing else. Part of the model, not a mask."""


def sorted_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    buckets_BHN: Tensor,
    context: Context,
    *,
    size: int,
    scale: float,
    penalty: float,
    dropout: float,
) -> tuple[Tensor, Tensor]:
    """Return one round's output (B, H, N, V) and the logarithms of its normalisers (B, H, N).

    Logits are q . k times `scale`, less `penalty` for a position with itself. A row with nothing to
    read has the output 0 and a normaliser that is least of all.
    """
    batch, heads, n, _ = q.shape
    count = -(-n // size)
    order_BHN = buckets_BHN.argsort(dim=-1, stable=True)
    back_BHN = order_BHN.argsort(dim=-1)
    missing = count * size - n

    def chunks(x_BHNK: Tensor) -> Tensor:
        index = order_BHN.unsqueeze(-1).expand(-1, -1, -1, x_BHNK.shape[-1])
        x = F.pad(x_BHNK.gather(2, index), (0, 0, 0, missing))
        return x.view(batch, heads, count, size, -1)

    def with_previous(x_BHUSK: Tensor) -> Tensor:
        # A single chunk would read itself twice, which changes nothing.
        if count == 1:
            return x_BHUSK
        return torch.cat([x_BHUSK, x_BHUSK.roll(1, dims=2)], dim=3)

    places_BHUS = F.pad(order_BHN, (0, missing), value=-1).view(batch, heads, count, size)
    keys_BHUX = with_previous(places_BHUS.unsqueeze(-1)).squeeze(-1)
    hidden = keys_BHUX == -1
    if context.key_mask_BM is not None:
        padding_BHN = (~context.key_mask_BM[:, None]).expand(-1, heads, -1)
        flat = padding_BHN.gather(2, keys_BHUX.clamp(min=0).flatten(2))
        hidden = hidden | flat.view_as(hidden)
    hidden = hidden.unsqueeze(3)
    rows, columns = places_BHUS.unsqueeze(-1), keys_BHUX.unsqueeze(-2)
    if context.causal:
        hidden = hidden | (columns > rows)

    q_BHUSK = chunks(q * scale)
    logits = q_BHUSK @ with_previous(chunks(k)).mT
    if penalty:
        logits = logits - penalty * (rows == columns)
    nothing_BHUS1 = hidden.all(-1, keepdim=True)
    logits = logits.masked_fill(hidden & ~nothing_BHUS1, -math.inf)
    total_BHUS1 = logits.logsumexp(-1, keepdim=True)
    weights = (logits - total_BHUS1).exp().masked_fill(nothing_BHUS1, 0.0)
    weights = F.dropout(weights, dropout, dropout > 0.0)
    out = weights @ with_previous(chunks(v))
    total = total_BHUS1.masked_fill(nothing_BHUS1, -2 * SELF)

    def put_back(x_BHUSV: Tensor) -> Tensor:
        index = back_BHN.unsqueeze(-1).expand(-1, -1, -1, x_BHUSV.shape[-1])
        return x_BHUSV.flatten(2, 3).gather(2, index)

    return put_back(out), put_back(total).squeeze(-1)
