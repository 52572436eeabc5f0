"""One pre-norm block: a mechanism, then an MLP, each on a residual branch.

B sequences, N positions, D model width
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import Context, Layer
from lra.models.dropout import Dropout

NORM_EPSILON = 1e-6
"""Epsilon of every LayerNorm, as in flax."""


class Mlp(nn.Module):
    """Linear, GELU (tanh form, as in flax), dropout, linear, dropout; Xavier weights."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.widen = nn.Linear(width, hidden)
        self.narrow = nn.Linear(hidden, width)
        self.dropout = Dropout(dropout)
        for linear in (self.widen, self.narrow):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.normal_(linear.bias, std=1e-6)

    def forward(self, x_BND: Tensor) -> Tensor:
        """Return (B, N, D), each position from itself alone."""
        hidden = self.dropout(F.gelu(self.widen(x_BND), approximate="tanh"))
        y_BND: Tensor = self.dropout(self.narrow(hidden))
        return y_BND


class Block(nn.Module):
    """x + dropout(mechanism(norm(x))), then x + MLP(norm(x)).

    The mechanism zeroes padding on its way in and out; the MLP and the residual stream leave any
    values there, which no real position ever sees.
    """

    def __init__(self, width: int, *, mechanism: Layer, mlp: Mlp, dropout: float) -> None:
        super().__init__()
        self.mechanism_norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.mechanism = mechanism
        self.dropout = Dropout(dropout)
        self.mlp_norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.mlp = mlp

    def forward(self, x_BND: Tensor, context: Context) -> Tensor:
        """Return (B, N, D)."""
        return self.step(x_BND, context, None)[0]

    def step(self, x_BND: Tensor, context: Context, state: Any) -> tuple[Tensor, Any]:
        """Return (B, N, D) for positions that go on from a state, and the state after them."""
        mixed_BND, state = self.mechanism(self.mechanism_norm(x_BND), context, state=state)
        x_BND = x_BND + self.dropout(mixed_BND)
        y_BND: Tensor = x_BND + self.mlp(self.mlp_norm(x_BND))
        return y_BND, state
