"""How many pairs one part of a softmax works off, padded and hidden ones included."""

from __future__ import annotations

from torch import Tensor

from attention_impls.pattern._layouts import Shared
from attention_impls.pattern._parts import _together, _written_is_cheaper, needs_autograd


def shared_pairs(layout: Shared, size: int, width: int, like: Tensor) -> int:
    """Pairs of one head where blocks of `size` queries read the same keys, or ever more of them.

    By tiles, each reads as far as its last block; written out, all read as far as the last of all.
    `width` is a head's; `like` lies on the device of the inputs.
    """
    queries = like.new_empty(size, width, device="meta")
    together = _together(layout, size)
    if needs_autograd(like, None) or _written_is_cheaper(queries, layout):
        together = layout.count
    total = 0
    for start in range(0, layout.count, together):
        blocks = slice(start, min(start + together, layout.count))
        total += (blocks.stop - blocks.start) * size * layout.reach(blocks)
    return total
