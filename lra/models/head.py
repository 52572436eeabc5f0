"""The head: from vectors of sequences, of pairs or of tokens to logits.

E examples, B sequences, N tokens, D model width, V vocabulary
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PairFeatures = Literal["four", "two"]
# Standard deviation of a standard normal cut at +-2; flax divides by it.
_CUT_NORMAL_STD = 0.87962566103423978


class TableHead(nn.Module):
    """Logits of tokens from the rows of a table, all or those of a slice: vectors times `scale`,
    times the table."""

    def __init__(
        self, table: nn.Embedding, *, scale: float = 1.0, rows: slice | None = None
    ) -> None:
        super().__init__()
        self.table = table
        self.scale = scale
        self.rows = rows

    def forward(self, x_BND: Tensor) -> Tensor:
        """Return one logit for each row, (B, N, V)."""
        if self.scale != 1.0:
            x_BND = x_BND * self.scale
        weight_VD = self.table.weight
        return F.linear(x_BND, weight_VD if self.rows is None else weight_VD[self.rows])


def build_head(width: int, hidden: Sequence[int], classes: int) -> nn.Sequential:
    """Return hidden ReLU layers and one linear layer; weights LeCun normal, as in flax."""
    widths = [width, *hidden]
    parts: list[nn.Module] = []
    for before, after in pairwise(widths):
        parts += [_lecun_linear(before, after), nn.ReLU()]
    return nn.Sequential(*parts, _lecun_linear(widths[-1], classes))


def pair(x1_ED: Tensor, x2_ED: Tensor, features: PairFeatures) -> Tensor:
    """Return the head's input for a pair: (E, 4 D), or (E, 2 D) as the original ran it."""
    if features == "two":
        return torch.cat([x1_ED, x2_ED], dim=-1)
    return torch.cat([x1_ED, x2_ED, x1_ED * x2_ED, x1_ED - x2_ED], dim=-1)


def feature_width(width: int, inputs: int, features: PairFeatures) -> int:
    """Return the width of the head's input."""
    if inputs == 1:
        return width
    return width * (4 if features == "four" else 2)


def _lecun_linear(width: int, out: int) -> nn.Linear:
    linear = nn.Linear(width, out)
    std = width**-0.5 / _CUT_NORMAL_STD
    nn.init.trunc_normal_(linear.weight, std=std, a=-2 * std, b=2 * std)
    nn.init.zeros_(linear.bias)
    return linear
