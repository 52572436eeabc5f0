"""Random directions for feature maps: Gaussian rows, made orthogonal block by block.

H heads   R draws   K head width
"""

from __future__ import annotations

import hashlib
import math
from typing import Literal

import torch
from torch import Tensor

Norms = Literal["chi", "sqrt"]


def orthogonal_draws(
    heads: int, draws: int, width: int, norms: Norms, generator: torch.Generator
) -> Tensor:
    """Return (H, R, K) float32 on the CPU: each head its own, in Haar-distributed orthogonal blocks.

    Any K consecutive rows from a multiple of K are orthogonal; the last block may be cut. Lengths are
    those of independent Gaussian rows (`chi`, so that each row alone is Gaussian) or all sqrt(K).
    """
    blocks = math.ceil(draws / width)
    gaussian = torch.randn(heads, blocks, width, width, generator=generator, dtype=torch.float64)
    directions_HRK = haar(gaussian).flatten(1, 2)[:, :draws]
    if norms == "chi":
        lengths = torch.randn(heads, draws, width, generator=generator, dtype=torch.float64)
        scaled = directions_HRK * lengths.norm(dim=-1, keepdim=True)
    else:
        scaled = directions_HRK * math.sqrt(width)
    return scaled.float()


def haar(gaussian: Tensor) -> Tensor:
    """Return orthogonal matrices, uniform over all of them, from square Gaussian ones.

    LAPACK's Q alone is not uniform: its reflections fix the signs (the first entry is negative in
    every draw), which biases positive features. Giving R a positive diagonal mends it (Mezzadri,
    How to generate random matrices from the classical compact groups, 2007, math-ph/0609050).
    """
    q, r = torch.linalg.qr(gaussian)
    return q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


def seeded(*parts: int) -> torch.Generator:
    """Return a CPU generator for a seed and whatever else tells one stream from another."""
    text = "/".join(str(part) for part in parts)
    digest = hashlib.sha256(text.encode()).digest()
    return torch.Generator(device="cpu").manual_seed(int.from_bytes(digest[:8], "little") >> 1)
