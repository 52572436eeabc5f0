"""Tiles: the pieces of heads and rows over which a kernel mechanism loops.

    B batch   H heads   N positions   K head width   R features   G heads of a tile, batch included

Features are R / K times as large as queries and keys, and writing them out bounds kernel attention,
not the products. So they are made tile by tile, used while they lie in a cache, and made again for
the gradient. On a GPU a tile is large, so that the loop is short.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor

TILE = 1 << 18
"""Features in one tile on a CPU: 1 MiB in float32, what fits a core's cache."""
ELSEWHERE = 256
"""Times as many on other devices: 256 MiB."""


class Tile(NamedTuple):
    """A block of batch rows and heads: some heads of one batch row, or all heads of several."""

    batch: slice
    heads: slice

    @property
    def repeats(self) -> int:
        """Batch rows in the block."""
        return int(self.batch.stop - self.batch.start)

    def of(self, x_BHNK: Tensor, rows: slice) -> Tensor:
        """Return (G, rows, K) of this block: a view where it is one batch row, else a copy."""
        return x_BHNK[self.batch, self.heads, rows].flatten(0, 1)

    def room(self, target_BHNK: Tensor, rows: slice) -> Tensor:
        """Return (G, rows, K) to write a result to: the target itself where `of` is a view."""
        place = target_BHNK[self.batch, self.heads, rows]
        if self.repeats == 1:
            return place[0]
        batch, heads, n, width = place.shape
        return place.new_empty(batch * heads, n, width)

    def put(self, target_BHNK: Tensor, rows: slice, part_GNK: Tensor) -> None:
        """Bring what was written to `room(target, rows)` into the target, if it is not there."""
        if self.repeats > 1:
            place = target_BHNK[self.batch, self.heads, rows]
            place.copy_(part_GNK.view(place.shape))

    def states(self, states_BHUR: Tensor) -> Tensor:
        """Return (G, U, R), one state per head of this block."""
        return states_BHUR[self.batch, self.heads].flatten(0, 1)

    def put_states(self, target_BHUR: Tensor, states_GUR: Tensor) -> None:
        """Write them into this block of the target."""
        place = target_BHUR[self.batch, self.heads]
        place.copy_(states_GUR.reshape(place.shape))

    def mask(self, mask_BM: Tensor | None, rows: slice) -> Tensor | None:
        """Return the mask of this block's keys, (G, rows)."""
        if mask_BM is None:
            return None
        heads = self.heads.stop - self.heads.start
        return mask_BM[self.batch, rows].repeat_interleave(heads, 0)


def tile_rows(x: Tensor, features: int) -> int:
    """Return how many rows of `features` one tile may hold."""
    return max(1, TILE * (1 if x.device.type == "cpu" else ELSEWHERE) // features)


def tiles(batch: int, heads: int, together: int) -> list[Tile]:
    """Cover all heads of all batch rows, about `together` heads at a time, or one."""
    if together >= 2 * heads:
        step = together // heads
        return [
            Tile(slice(start, min(start + step, batch)), slice(0, heads))
            for start in range(0, batch, step)
        ]
    step = max(1, together)
    return [
        Tile(slice(row, row + 1), slice(start, min(start + step, heads)))
        for row in range(batch)
        for start in range(0, heads, step)
    ]


def spans(length: int, rows: int, multiple: int = 1) -> Iterator[slice]:
    """Cut 0 ... length - 1 into spans of at most about `rows`, each a multiple.

    The rest below one multiple is a span of its own.
    """
    step = max(1, rows // multiple) * multiple
    whole = length - length % multiple
    for start in range(0, whole, step):
        yield slice(start, min(start + step, whole))
    if whole < length:
        yield slice(whole, length)
