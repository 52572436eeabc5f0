"""How the Sinkhorn Transformer makes a sort of what its blocks want.

B batch   H heads   U blocks   W blocks as sources
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attention_impls.contract import causal_mask


def sort(wanted_BHUW: Tensor, filled_BU: Tensor, iterations: int, causal: bool) -> Tensor:
    """Return S, (B, H, U, W): columns and then rows made to sum to 1, in logarithms.

    Blocks without a real position want themselves and are wanted by none, so that nothing is empty.
    Causal, rows alone sum to 1, over earlier blocks; a row without any is zero.
    """
    count = wanted_BHUW.shape[2]
    filled_B1UW = (filled_BU[:, :, None] & filled_BU[:, None, :]).unsqueeze(1)
    if causal:
        earlier_UW = causal_mask(count, count, wanted_BHUW.device).tril(-1)
        permitted = filled_B1UW & earlier_UW
        any_B1U1 = permitted.any(-1, keepdim=True)
        logits = wanted_BHUW.masked_fill(~permitted & any_B1U1, -math.inf)
        return logits.softmax(-1).masked_fill(~any_B1U1, 0.0)
    unit_UW = torch.eye(count, dtype=torch.bool, device=wanted_BHUW.device)
    empty_B1U1 = ~filled_BU[:, None, :, None]
    wanted_BHUW = wanted_BHUW.masked_fill(~filled_B1UW, -math.inf)
    wanted_BHUW = wanted_BHUW.masked_fill(unit_UW & empty_B1U1, 0.0)
    for _ in range(iterations):
        wanted_BHUW = wanted_BHUW.log_softmax(-2).log_softmax(-1)
    return wanted_BHUW.exp() if iterations else wanted_BHUW.softmax(-1)


def dense_sort(wanted: Tensor, filled_BU: Tensor, iterations: int, *, causal: bool) -> Tensor:
    """For the oracle: shares divided by their sums, over and over."""
    both = filled_BU[:, None, :, None] & filled_BU[:, None, None, :]
    if causal:
        both = both & torch.ones_like(both).tril(-1)
    top = wanted.detach().amax((-2, -1), keepdim=True) if wanted.numel() else 0.0
    share = torch.exp(wanted - top) * both
    for _ in range(1 if causal else iterations):
        if not causal:
            total = share.sum(-2, keepdim=True)
            share = share / torch.where(total > 0.0, total, 1.0)
        total = share.sum(-1, keepdim=True)
        share = share / torch.where(total > 0.0, total, 1.0)
    if not causal and not iterations:
        total = share.sum(-1, keepdim=True)
        share = share / torch.where(total > 0.0, total, 1.0)
    return share
