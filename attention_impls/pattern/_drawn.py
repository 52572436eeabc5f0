"""Random blocks by a hash: a uniform choice that needs no table as long as the longest input.

H heads   U rows of blocks   V blocks to choose from   R blocks that a row draws
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor


@lru_cache(maxsize=64)
def random_blocks(seeds: tuple[int, ...], used: int, random: int, farthest: int) -> Tensor:
    """Return `random` blocks up to `farthest` for each seed and block 1 ... used - 2, -1 where none
    is left.

    A row draws, among blocks that it does not read anyway, those with the least hash of (seed, row,
    block): a uniform choice without replacement that needs no table as long as the longest input.
    """
    taken = min(random, used)
    rows = torch.arange(1, max(1, used - 1))
    columns = torch.arange(used)
    drawn = torch.full((len(seeds), len(rows), random), -1)
    together = max(1, 2**20 // max(1, used))
    for head, seed in enumerate(seeds):
        for start in range(0, len(rows), together):
            row_U1 = rows[start : start + together].unsqueeze(-1)
            rank_UV = ranked(seed, row_U1, columns)
            read_UV = read_anyway(row_U1, columns, used, farthest)
            drawn[head, start : start + together, :taken] = least(rank_UV, read_UV, taken)
    return drawn


def ranked(seed: int, row_U1: Tensor, columns: Tensor) -> Tensor:
    """Return the hash of (seed, row, block), (U, V), without a sign."""
    return _mixed(_mixed(row_U1 * _GOLDEN + seed) + columns * _GOLDEN) >> 1


def read_anyway(
    row_U1: Tensor, columns: Tensor, used: int | Tensor, farthest: int | Tensor
) -> Tensor:
    """Return which blocks are not for rows to draw, (U, V) or by example."""
    read = (columns - row_U1).abs() <= 1
    # The arena leaves out a few more for the two rows before the last; where `farthest`
    # is the last block they read those anyway.
    spared = 4 * (row_U1 == used - 3) + 3 * (row_U1 == used - 2)
    return read | (columns == 0) | (columns == used - 1) | (columns > farthest - spared)


def least(rank: Tensor, read: Tensor, taken: int) -> Tensor:
    """Return the blocks of least rank among those not read anyway, -1 where none is left."""
    most = torch.iinfo(torch.int64).max
    rank, block = rank.masked_fill(read, most).topk(taken, dim=-1, largest=False)
    return block.masked_fill(rank == most, -1)


_GOLDEN = 0x1E3779B97F4A7C15


def _mixed(x: Tensor) -> Tensor:
    """Return int64 numbers scrambled as by SplitMix64; products wrap around."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        x = (x ^ (x >> shift & (1 << 64 - shift) - 1)) * factor
    return x ^ (x >> 31 & (1 << 33) - 1)
