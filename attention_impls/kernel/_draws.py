"""Random directions for feature maps: Gaussian rows, made orthogonal block by block.

H heads   R draws   K head width
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

Norms = Literal["chi", "sqrt"]


def orthogonal_draws(
    heads: int, draws: int, width: int, norms: Norms, generator: torch.Generator
) -> Tensor:
    """Return (H, R, K) float32 on the CPU, each head its own.

    Blocks of K rows are orthogonal, uniformly so; the last block may be cut. Their lengths are
    those of independent Gaussian rows (`chi`: each row alone is Gaussian) or all sqrt(K).
    """
    blocks = math.ceil(draws / width)
    gaussian = torch.randn(heads, blocks, width, width, generator=generator, dtype=torch.float64)
    directions_HRK = haar(gaussian).flatten(1, 2)[:, :draws]
    lengths_HR1 = torch.full((heads, draws, 1), math.sqrt(width), dtype=torch.float64)
    if norms == "chi":
        others = torch.randn(heads, draws, width, generator=generator, dtype=torch.float64)
        lengths_HR1 = others.square().sum(-1, keepdim=True).sqrt()
    return (directions_HRK * lengths_HR1).float()


def haar(gaussian: Tensor) -> Tensor:
    """Return orthogonal matrices, uniform over all of them, from square Gaussian ones.

    LAPACK's Q alone is not uniform: its reflections fix the signs (the first entry is negative in
    every draw), which biases positive features. Giving R a positive diagonal mends it (Mezzadri,
    How to generate random matrices from the classical compact groups, 2007, math-ph/0609050).
    """
    rotation, triangle = torch.linalg.qr(gaussian)
    uniform: Tensor = rotation * triangle.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    return uniform
