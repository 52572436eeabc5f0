"""Dropout of weights that are made tile by tile, and again in the backward pass: the same draws."""

from __future__ import annotations

import torch
from torch import Tensor


def draw_seed(dropout: float) -> int:
    """Return what both passes seed their draws with, from torch's generator; 0 where none drop."""
    return int(torch.randint(2**62, ())) if dropout else 0


class Drops:
    """The draws of one pass, in the order of its tiles."""

    def __init__(self, dropout: float, seed: int, device: torch.device) -> None:
        self.kept = 1.0 - dropout
        self.generator = torch.Generator(device).manual_seed(seed) if dropout else None

    def factors(self, like: Tensor) -> Tensor:
        """Return what the next tile's weights are multiplied by, 0 or 1 / (1 - p)."""
        drawn = torch.empty_like(like).bernoulli_(self.kept, generator=self.generator)
        return drawn.div_(self.kept)
