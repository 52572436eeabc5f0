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
        """Return (N, D), or (B, N, D). Raises `UnsupportedError` beyond the table."""
        return look_up(self.table, positions_N)


def look_up(table_LD: Tensor, positions_N: Tensor) -> Tensor:
    """Return the rows of a table of positions, (N, D), or (B, N, D) for those of each example.
    Raises `UnsupportedError` for more of them than it has and, on a CPU, for one that it has not.

    On a GPU the positions themselves are not looked at: that would wait for it, at every call.
    """
    rows, asked = len(table_LD), positions_N.shape[-1]
    if asked > rows:
        raise UnsupportedError(
            f"learned positions were built for at most {rows} positions, got {asked}; "
            "build them with a larger max_length"
        )
    if positions_N.numel() and positions_N.is_cpu and not torch.compiler.is_compiling():
        for place in (int(positions_N.amin()), int(positions_N.amax())):
            if not 0 <= place < rows:
                raise UnsupportedError(
                    f"learned positions were built for 0 to {rows - 1}, got {place}; "
                    "build them with a larger max_length, or count from 0"
                )
    return table_LD[positions_N]
