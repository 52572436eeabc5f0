"""The numbers of a case: its inputs, the places of its padding, which pairs meet, and places that
are given.

B batch N positions, M masked positions or keys D model width
"""

from __future__ import annotations

import torch
from torch import Tensor

from lra.core.findings import Case

GROWN = {"large": 30.0, "huge": 1e4}
"""Factor of the one token of an example that is so."""

DENSITIES = (0.5, 0.1, 0.9)
"""Shares of the pairs that meet, by a case's seed."""


def normal_inputs(case: Case, length: int, width: int, stream: int) -> Tensor:
    """Return normal numbers by a case's seed, (B, N, D) float64, changed as it asks; each stream
    has its own."""
    generator = torch.Generator().manual_seed(2 * case.seed + stream)
    x_BND = torch.randn(case.batch, length, width, generator=generator, dtype=torch.float64)
    if case.inputs == "zeros":
        return torch.zeros_like(x_BND)
    if case.inputs == "identical":
        return x_BND[:, :1].expand_as(x_BND).clone()
    if case.inputs in GROWN and length:
        x_BND[torch.arange(case.batch), places(case.batch, length)] *= GROWN[case.inputs]
    return x_BND


def places(batch: int, length: int) -> Tensor:
    """Return a place in each example, (B,): the first position of the first, the last of the
    last."""
    return torch.arange(batch) * (length - 1) // max(1, batch - 1)


def real_positions(case: Case) -> Tensor | None:
    """Return the positions without padding, (B, M), on the CPU; None where there is no padding."""
    length = case.n if case.m is None else case.m
    if case.mask == "none":
        return None
    mask = torch.ones(case.batch, length, dtype=torch.bool)
    half = (length + 1) // 2
    if case.mask in ("all", "mixed"):
        mask[0] = False
    if case.mask == "behind":
        mask[1:, half:] = False
    elif case.mask == "front":
        mask[1:, : length // 2] = False
    elif case.mask == "first":
        mask[0, half:] = False
    elif case.mask == "mixed":
        mask[1:2, half:] = False
    elif case.mask == "ragged":
        mask = torch.arange(length) < ragged_lengths(case.batch, length)[:, None]
    elif case.mask == "scattered":
        generator = torch.Generator().manual_seed(case.seed + 2)
        mask = torch.rand(case.batch, length, generator=generator) > 0.3
        mask[:1] = True
        mask[:, length // 2 : length // 2 + 1] = True
    return mask


def special_positions(case: Case) -> Tensor | None:
    """Return the positions that a request names as special, (B, N), on the CPU, others in each
    example and padded ones among them; None where it names none."""
    if not case.special:
        return None
    generator = torch.Generator().manual_seed(case.seed + 3)
    special = torch.rand(case.batch, case.n, generator=generator) < 0.3
    if case.n:
        special[torch.arange(case.batch), places(case.batch, case.n)] = True
    return special


def ragged_lengths(batch: int, length: int) -> Tensor:
    """Return numbers of real positions, (B,): 1 in the first example, all in the last."""
    least = min(1, length)
    return least + (length - least) * torch.arange(batch) // max(1, batch - 1)


def pairs_that_meet(case: Case) -> Tensor:
    """Return a mask of pairs by a case's seed, (B, N, M), on the CPU: others in each example, where
    one of several queries meets no key."""
    generator = torch.Generator().manual_seed(case.seed + 4)
    m = case.n if case.m is None else case.m
    density = DENSITIES[case.seed % len(DENSITIES)]
    mask_BNM = torch.rand(case.batch, case.n, m, generator=generator) < density
    if case.n > 1:
        mask_BNM[torch.arange(case.batch), places(case.batch, case.n)] = False
    return mask_BNM


def given_places(case: Case, length: int, stream: int) -> Tensor:
    """Return places of positions by a case's seed, (B, L) int64 below L, on the CPU, others in each
    example: an order, or for an odd seed two sequences packed into one row."""
    generator = torch.Generator().manual_seed(2 * case.seed + stream)
    if case.seed % 2 == 0:
        return torch.rand(case.batch, length, generator=generator).argsort(dim=1)
    index_L = torch.arange(length)
    border_B1 = torch.randint(max(1, length), (case.batch, 1), generator=generator)
    return torch.where(index_L < border_B1, index_L, index_L - border_B1)
