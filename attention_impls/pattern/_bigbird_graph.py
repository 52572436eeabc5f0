"""BigBird's graph of blocks: which blocks each block reads, as tables for any length.

B batch   N positions   H heads   U blocks   R random blocks that a block draws
X examples, or 1 where all have as many blocks in use   A blocks that a block reads, 5 + R

An example's blocks in use end with that of its last real position: the first and the last of them
are global, those behind read nothing and are read by none. A table names, in this order, the first
and the last block, the three next to a row's own, and those that the row draws.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_impls.pattern._drawn import least, random_blocks, ranked, read_anyway

REMEMBERED = 64
"""Tables that a layer keeps, each for a length. None makes room for another on a GPU, whose graphs
go on reading it where it lies."""


class BlockGraph:
    """Tables of the graph, by head: they follow from seeds, are made once for a length, and kept.

    On a CPU those of each number of used blocks are made one by one; on a GPU all at once, from
    numbers that the host never sees. Both draw the same blocks.
    """

    def __init__(
        self, *, seeds: tuple[int, ...], size: int, random: int, reach: int | None
    ) -> None:
        self.seeds = seeds
        """One for each head."""
        self.size = size
        """Positions in a block."""
        self.random = random
        """R, or as many as are left."""
        self.reach = reach
        """The last block that may be drawn, or None where all may."""
        self._cache: dict[tuple[int, int, torch.device], tuple[Tensor, Tensor]] = {}
        self._ranks: dict[tuple[int, torch.device], Tensor] = {}

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # drawn and kept outside of graphs
    def tables(self, mask_BN: Tensor | None, n: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the tables of a batch, (X, H, U, A), and how many blocks are in use, (X,): X is 1
        where all examples have as many, and elsewhere than on a CPU, which would have to wait for
        the number, where nothing is padded.

        Entries without a block, repeated ones and the rows of global blocks name block U.
        """
        count = -(-n // self.size)
        if device.type != "cpu":
            return self._tables_unasked(mask_BN, count, device)
        lengths = self.blocks_in_use(mask_BN, n)
        lengths = lengths if len(set(lengths)) > 1 else lengths[:1]
        known = {}
        for used in set(lengths):
            key = (used, count, device)
            if key not in self._cache:
                if len(self._cache) >= REMEMBERED:
                    self._cache.clear()
                self._cache[key] = self._table(used, count), torch.tensor(used)
            known[used] = self._cache[key]
        tables, used_X = zip(*(known[used] for used in lengths), strict=True)
        return torch.stack(tables), torch.stack(used_X)

    def blocks_in_use(self, mask_BN: Tensor | None, n: int) -> list[int]:
        """Return how many blocks reach each example's last real position, at least one."""
        if mask_BN is None:
            return [-(-n // self.size)]
        used: list[int] = self._last_blocks(mask_BN).tolist()
        return used

    def drawn(self, used: int) -> Tensor:
        """Return the random blocks of all but the first and last of `used` blocks, (H, U - 2, R);
        -1 where fewer are left."""
        farthest = used - 1 if self.reach is None else min(used - 1, self.reach)
        return random_blocks(self.seeds, used, self.random, farthest)

    def whole(self, mask_BN: Tensor) -> Tensor:
        """Return the complete graph between positions, (B, 1, N, N); blocks past an example's last
        read nothing."""
        block_N = torch.arange(mask_BN.shape[1], device=mask_BN.device) // self.size
        used_B1 = self._last_blocks(mask_BN).unsqueeze(-1)
        return ((block_N < used_B1).unsqueeze(-1) & mask_BN.unsqueeze(1)).unsqueeze(1)

    def between_positions(self, table_XHUA: Tensor, used_X: Tensor, n: int) -> Tensor:
        """Return the graph of a table as a mask, (X, H, N, N)."""
        examples, heads, count, _ = table_XHUA.shape
        read_XHUU = table_XHUA.new_zeros(examples, heads, count, count + 1, dtype=torch.bool)
        read_XHUU = read_XHUU.scatter_(3, table_XHUA, True)[..., :count]
        block_U = torch.arange(count, device=table_XHUA.device)
        used_X1 = used_X.unsqueeze(-1)
        ends_XU = (block_U == 0) | (block_U == used_X1 - 1)
        read_XHUU |= (ends_XU.unsqueeze(-1) & (block_U < used_X1).unsqueeze(1)).unsqueeze(1)
        by_row = read_XHUU.repeat_interleave(self.size, dim=2)[:, :, :n]
        return by_row.repeat_interleave(self.size, dim=3)[..., :n]

    def _last_blocks(self, mask_BN: Tensor) -> Tensor:
        """Return `blocks_in_use` on the mask's device, (B,), so that no GPU is waited for."""
        n, size = mask_BN.shape[1], self.size
        places_N = torch.arange(1, n + 1, device=mask_BN.device)
        last_B = (mask_BN * places_N).amax(dim=1) if n else mask_BN.sum(dim=1)
        return (last_B + size - 1).div(size, rounding_mode="floor").clamp(min=1)

    def _table(self, used: int, count: int) -> Tensor:
        """Return the table of `count` blocks of which `used` are in use, (H, U, A)."""
        nothing = count
        table = torch.full((len(self.seeds), count, 5 + self.random), nothing)
        if used > 2:
            block_U1 = torch.arange(1, used - 1).unsqueeze(-1)
            near = block_U1 + torch.tensor([-1, 0, 1])
            near = near.masked_fill((near == 0) | (near == used - 1), nothing)
            table[:, 1 : used - 1, 0] = 0
            table[:, 1 : used - 1, 1] = used - 1
            table[:, 1 : used - 1, 2:5] = near
            drawn = self.drawn(used)
            table[:, 1 : used - 1, 5:] = drawn.masked_fill(drawn < 0, nothing)
        return table

    def _tables_unasked(
        self, mask_BN: Tensor | None, count: int, device: torch.device
    ) -> tuple[Tensor, Tensor]:
        """The same as `tables`, on the device, so that nothing is waited for, and a graph may hold
        it."""
        if mask_BN is not None:
            used_B = self._last_blocks(mask_BN)
            return self._tables_of(used_B, count), used_B
        key = (count, count, device)
        if key in self._cache:
            return self._cache[key]
        with torch.inference_mode(False):
            used_1 = torch.full((1,), count, device=device)
            made = self._tables_of(used_1, count), used_1
        if len(self._cache) < REMEMBERED:
            self._cache[key] = made
        return made

    def _tables_of(self, used_X: Tensor, count: int) -> Tensor:
        """Return `_table` for each of several numbers of used blocks, (X, H, U, A)."""
        used_X111 = used_X.view(-1, 1, 1, 1)
        last = used_X111 - 1
        columns = torch.arange(count, device=used_X.device)
        block_U1 = columns.unsqueeze(-1)
        near_X1U3 = block_U1 + torch.arange(-1, 2, device=used_X.device)
        near_X1U3 = near_X1U3.masked_fill((near_X1U3 == 0) | (near_X1U3 == last), -1)
        farthest = last if self.reach is None else last.clamp(max=self.reach)
        read_X1UU = read_anyway(block_U1, columns, used_X111, farthest)
        ranks = self._rank(count, used_X.device)
        drawn_XHUR = least(ranks, read_X1UU, min(self.random, count))
        parts = (torch.zeros_like(last), last, near_X1U3, drawn_XHUR)
        shape = (len(used_X), len(self.seeds), count, -1)
        table_XHUA = torch.cat([part.expand(shape) for part in parts], dim=-1)
        inner_X1U1 = (block_U1 > 0) & (block_U1 < last)
        return table_XHUA.masked_fill(~inner_X1U1 | (table_XHUA < 0), count)

    def _rank(self, count: int, device: torch.device) -> Tensor:
        """Return how all blocks rank in each row's draw, (H, U, U). Kept for the next power of two:
        all that is ever kept is a third more than the largest."""
        room = 1 << (count - 1).bit_length()
        if (room, device) not in self._ranks:
            with torch.inference_mode(False):
                blocks = torch.arange(room, device=device)
                heads = [ranked(seed, blocks.unsqueeze(-1), blocks) for seed in self.seeds]
                self._ranks[room, device] = torch.stack(heads)
        return self._ranks[room, device][:, :count, :count]


def first_and_last(used_X: Tensor) -> Tensor:
    """Return the first and the last block in use, (X, 2); two different ones also where the last is
    the first: the second is then padding."""
    return torch.stack([torch.zeros_like(used_X), (used_X - 1).clamp(min=1)], dim=1)
