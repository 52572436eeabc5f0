"""A learned vector for each position, added to the input.

N positions   D model width
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attention_impls.contract import Dims, Position
from lra.core.cards import PositionCard
from lra.core.errors import UnsupportedError


class Learned(Position):
    """A table of `max_length` rows, drawn from N(0, 0.02) as in the Long Range Arena's code.

    Knows nothing of longer inputs and refuses them.
    """

    card = PositionCard(
        title="Learned",
        paper="Gehring et al., Convolutional Sequence to Sequence Learning, ICML 2017, "
        "arXiv:1705.03122",
        year=2017,
        acts_on="input",
        fixed_length=True,
    )

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.table = nn.Parameter(torch.empty(dims.max_length, dims.width))
        nn.init.normal_(self.table, std=0.02)

    def embed(self, positions_N: Tensor) -> Tensor:
        """Return (N, D). Raises `UnsupportedError` beyond the table."""
        return look_up(self.table, positions_N)


def look_up(table_LD: Tensor, positions_N: Tensor) -> Tensor:
    """Return the rows of a table of positions, (N, D); more of them than it has are refused.

    The positions themselves are not looked at: on a GPU that would wait for it, at every call.
    """
    rows, asked = len(table_LD), len(positions_N)
    if asked > rows:
        raise UnsupportedError(
            f"learned positions were built for at most {rows} positions, got {asked}; "
            "build them with a larger max_length"
        )
    return table_LD[positions_N]
