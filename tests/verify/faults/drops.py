"""Faults of what dropout takes away: draws that queries share, and outputs in place of weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context
from verify.faults.dense import Dense


class KeysDroppedForAllQueries(Dense, law="dropout", stranger=""):
    """Whole keys are dropped, the same for all queries of a head."""

    def dropped(self, weights: Tensor) -> Tensor:
        ones = torch.ones_like(weights[..., :1, :])
        return weights * F.dropout(ones, self.dims.dropout, self.training)


class OutputsDropped(Dense, law="dropout", stranger=""):
    """Dropout stands behind the values, where it drops features of outputs."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        out = super().read(q, k, v, context)
        return F.dropout(out, self.dims.dropout, self.training)

    def dropped(self, weights: Tensor) -> Tensor:
        return weights
