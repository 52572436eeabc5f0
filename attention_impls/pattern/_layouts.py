"""Which keys a block of queries reads: four geometries behind one face.

B batch   H heads   P keys as laid out, padding included   K width of a head
U blocks of queries   S queries in a block   W keys that a block reads   T blocks of a tile

A layout knows places, not permissions: which of the pairs may interact is for the rule of a part
(`_parts`). `windows` is for autograd; `tile` and `add_product` work on one head of
one example, and spare copies where they can.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from attention_impls.pattern._band import Band, add_to_windows


def divided(x: Tensor, dim: int, *sizes: int) -> Tensor:
    """Divide a dimension into several, a view whatever the strides; -1 is whatever is left."""
    known = math.prod([size for size in sizes if size >= 0])
    whole = [x.shape[dim] // known if size < 0 else size for size in sizes]
    return x.view(*x.shape[:dim], *whole, *x.shape[dim + 1 :])


class Tile(NamedTuple):
    """Blocks of one head of one example."""

    example: int
    head: int
    blocks: slice


class Layout(ABC):
    """U blocks of queries, and the keys that each reads."""

    per_head: bool = False
    """Whether heads read different keys."""

    @property
    @abstractmethod
    def count(self) -> int:
        """U, blocks of queries."""

    @property
    @abstractmethod
    def width(self) -> int:
        """W, most keys that a block reads."""

    @abstractmethod
    def windows(self, x_BHPK: Tensor) -> Tensor:
        """Return what each block reads, (B, H, U, W, K)."""

    @abstractmethod
    def tile(self, x_PK: Tensor, at: Tile) -> Tensor:
        """Return what the blocks of a tile read, (T, W, K)."""

    @abstractmethod
    def add_product(
        self, total_PK: Tensor, at: Tile, a_TSW: Tensor, x_TSK: Tensor, scale: float = 1.0
    ) -> None:
        """Add scale a^T x of each block to the keys that it read."""


@dataclass(frozen=True)
class Own(Layout):
    """Block u reads the u-th group of keys and no others; of each group, the first W."""

    blocks: int
    group: int
    """Keys in a group."""
    keys: int

    @property
    def count(self) -> int:
        return self.blocks

    @property
    def width(self) -> int:
        return self.keys

    def windows(self, x_BHPK: Tensor) -> Tensor:
        return divided(x_BHPK, 2, self.blocks, self.group)[..., : self.keys, :]

    def tile(self, x_PK: Tensor, at: Tile) -> Tensor:
        return divided(x_PK, 0, self.blocks, self.group)[at.blocks, : self.keys]

    def add_product(
        self, total_PK: Tensor, at: Tile, a_TSW: Tensor, x_TSK: Tensor, scale: float = 1.0
    ) -> None:
        self.tile(total_PK, at).baddbmm_(a_TSW.mT, x_TSK, alpha=scale)


@dataclass(frozen=True)
class Windows(Layout):
    """Overlapping windows of a band: strided views."""

    band: Band

    @property
    def count(self) -> int:
        return self.band.count

    @property
    def width(self) -> int:
        return self.band.width

    def windows(self, x_BHPK: Tensor) -> Tensor:
        return self.band.windows(x_BHPK).mT

    def tile(self, x_PK: Tensor, at: Tile) -> Tensor:
        return x_PK.unfold(0, self.band.width, self.band.size)[at.blocks].mT

    def add_product(
        self, total_PK: Tensor, at: Tile, a_TSW: Tensor, x_TSK: Tensor, scale: float = 1.0
    ) -> None:
        total_USK = divided(total_PK, 0, -1, self.band.size)
        add_to_windows(total_USK, at.blocks, a_TSW, x_TSK, scale)


@dataclass(frozen=True)
class Shared(Layout):
    """Every block reads the same keys; or a tile as many as its last block may, by steps."""

    blocks: int
    keys: int
    step: int = 0
    """By how many keys the reach grows from a block to the next; 0 where all read all."""
    first: int = 0
    """Steps that the first block reads."""

    @property
    def count(self) -> int:
        return self.blocks

    @property
    def width(self) -> int:
        return self.reach(slice(0, self.blocks))

    def reach(self, blocks: slice) -> int:
        """Return W of a tile: at least one key, permitted or not."""
        if not self.step:
            return self.keys
        last: int = self.first + blocks.stop - 1
        return min(self.keys, max(1, last * self.step))

    def windows(self, x_BHPK: Tensor) -> Tensor:
        return x_BHPK[:, :, None, : self.width].expand(-1, -1, self.blocks, -1, -1)

    def tile(self, x_PK: Tensor, at: Tile) -> Tensor:
        return x_PK[: self.reach(at.blocks)].expand(at.blocks.stop - at.blocks.start, -1, -1)

    def add_product(
        self, total_PK: Tensor, at: Tile, a_TSW: Tensor, x_TSK: Tensor, scale: float = 1.0
    ) -> None:
        total_PK[: a_TSW.shape[-1]].addmm_(a_TSW.flatten(0, 1).mT, x_TSK.flatten(0, 1), alpha=scale)


@dataclass(frozen=True)
class Graph(Layout):
    """Each block reads the blocks of keys that a table names."""

    table_XYUA: Tensor
    """int64: blocks of keys, by example and head, or one for all of either."""
    size: int
    """Keys in a block."""

    @property
    def per_head(self) -> bool:  # type: ignore[override]
        """Whether heads read different keys."""
        return self.table_XYUA.shape[1] > 1

    @property
    def count(self) -> int:
        return self.table_XYUA.shape[2]

    @property
    def width(self) -> int:
        return self.table_XYUA.shape[3] * self.size

    def windows(self, x_BHPK: Tensor) -> Tensor:
        batch, heads, _, width = x_BHPK.shape
        blocks = divided(x_BHPK, 2, -1, self.size).flatten(3)
        index = self.table_XYUA.flatten(2).expand(batch, heads, -1).unsqueeze(-1)
        read = blocks.gather(2, index.expand(-1, -1, -1, blocks.shape[-1]))
        return read.view(batch, heads, self.count, self.width, width)

    def _named(self, at: Tile) -> Tensor:
        """Return the blocks of keys that a tile reads, (T * A)."""
        examples, heads = self.table_XYUA.shape[:2]
        return self.table_XYUA[at.example % examples, at.head % heads, at.blocks].flatten()

    def tile(self, x_PK: Tensor, at: Tile) -> Tensor:
        index = self._named(at)
        width = x_PK.shape[-1]
        rows = x_PK.reshape(-1, self.size * width).index_select(0, index)
        return rows.view(at.blocks.stop - at.blocks.start, self.width, width)

    def add_product(
        self, total_PK: Tensor, at: Tile, a_TSW: Tensor, x_TSK: Tensor, scale: float = 1.0
    ) -> None:
        product_TWK = torch.bmm(a_TSW.mT, x_TSK)
        width = product_TWK.shape[-1]
        total_PK.view(-1, self.size * width).index_add_(
            0, self._named(at), product_TWK.view(-1, self.size * width), alpha=scale
        )
