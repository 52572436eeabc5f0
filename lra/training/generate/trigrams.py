"""A ban of tokens that would complete a trigram a second time.

R rows   N tokens so far   V vocabulary
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def without_repeats(log_p_RV: Tensor, tokens_RN: Tensor) -> Tensor:
    """Return log probabilities with -inf for each token that would end a trigram which the row
    already has; they are not made to sum to 1 again."""
    if tokens_RN.shape[1] < 3:
        return log_p_RV
    first, second, third = tokens_RN[:, :-2], tokens_RN[:, 1:-1], tokens_RN[:, 2:].long()
    begun = (first == tokens_RN[:, -2:-1]) & (second == tokens_RN[:, -1:])
    times_RV = torch.zeros_like(log_p_RV, dtype=torch.int32)
    times_RV.scatter_add_(1, third, begun.int())
    return log_p_RV.masked_fill(times_RV > 0, -math.inf)
