"""Summary columns of the Sparse Transformer's fixed pattern: places of a block that all may read.

N queries   M keys   U blocks   P summary columns

Positions alone say which they are, and so who reads whom. Blocks are counted from position 0 on:
whoever has a class token ahead of them takes it off first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Summaries:
    """Blocks of l positions, and which places of each are read from afar."""

    size: int
    """l, positions in a block."""
    last: int
    """c, how many of a block's last positions are summaries; from l on it is all of them."""
    first: bool
    """Whether a block's first position is one too, as in the arena."""

    @property
    def places(self) -> list[int]:
        """Return the places in a block that others read."""
        last = range(max(0, self.size - self.last), self.size)
        return sorted({0, *last} if self.first else last)

    @property
    def per_block(self) -> int:
        """Return how many positions of a block others read."""
        return len(self.places)

    @property
    def own_places(self) -> slice:
        """Return the places in a block that none but the block reads."""
        start = 1 if self.first else 0
        return slice(start, max(start, self.size - self.last))

    @property
    def own_width(self) -> int:
        """Return how many they are."""
        places = self.own_places
        width: int = places.stop - places.start
        return width

    def columns(self, m: int, device: torch.device) -> Tensor:
        """Return the summary columns among m positions, (P); counted beforehand, for no GPU is to
        be waited for."""
        size, places = self.size, self.places
        number = m // size * len(places) + sum(place < m % size for place in places)
        starts_U1 = torch.arange(0, m, size, device=device).unsqueeze(-1)
        last = torch.arange(size - min(size, self.last), size, device=device)
        places_P = F.pad(last, (len(places) - len(last), 0))
        return (starts_U1 + places_P).flatten()[:number]

    def are_among(self, columns_M: Tensor) -> Tensor:
        """Return which positions are summaries, (M)."""
        summary = columns_M % self.size >= self.size - self.last
        return summary | (columns_M % self.size == 0) if self.first else summary

    def pattern(self, rows_N: Tensor, columns_M: Tensor, *, causal: bool) -> Tensor:
        """Return which rows read which columns, from positions, (N, M): their own block, and all
        summaries."""
        rows_N1 = rows_N.unsqueeze(-1)
        union = (rows_N1 // self.size == columns_M // self.size) | self.are_among(columns_M)
        return union & (columns_M <= rows_N1) if causal else union

    def read_last(self, m: int, device: torch.device) -> Tensor:
        """Return which of m positions the last one reads: the summaries of earlier blocks, then its
        own block so far."""
        first = (m - 1) // self.size * self.size
        own_P = torch.arange(first, m, device=device)
        return torch.cat([self.columns(first, device), own_P])
