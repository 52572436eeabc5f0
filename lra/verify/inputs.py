"""The numbers of a case: its inputs, and the places of its padding.

B batch N positions, M masked positions D model width
"""

from __future__ import annotations

import torch
from torch import Tensor

from lra.core.findings import Case


def normal_inputs(case: Case, length: int, width: int, stream: int) -> Tensor:
    """Return normal numbers by a case's seed, (B, N, D) float64; each stream has its own."""
    generator = torch.Generator().manual_seed(2 * case.seed + stream)
    return torch.randn(case.batch, length, width, generator=generator, dtype=torch.float64)


def real_positions(case: Case) -> Tensor | None:
    """Return the positions without padding, (B, M), on the CPU; None where there is no padding."""
    length = case.n if case.m is None else case.m
    if case.mask == "none":
        return None
    mask = torch.ones(case.batch, length, dtype=torch.bool)
    if case.mask == "all":
        mask[0] = False
    elif case.mask == "behind":
        mask[1:, (length + 1) // 2 :] = False
    elif case.mask == "front":
        mask[1:, : length // 2] = False
    else:
        generator = torch.Generator().manual_seed(case.seed + 2)
        mask = torch.rand(case.batch, length, generator=generator) > 0.3
        mask[:1] = True
        mask[:, length // 2 : length // 2 + 1] = True
    return mask
