"""Sizes that the cases of a law take in turn: heads, widths, batches, layers, biases."""

from __future__ import annotations

from typing import Any, NamedTuple

from lra.core.findings import BiasKind, Case


class Size(NamedTuple):
    """Sizes of the heads, and of the model around them."""

    heads: int
    head_width: int
    width: int | None = None
    """Width of the model; None is the default of `Case`."""


SIZES = (
    Size(4, 8),
    Size(8, 5, 40),
    Size(1, 64),
    Size(3, 16, 48),
    Size(6, 3),
    Size(1, 7, 7),
    Size(12, 2, 20),
    Size(2, 128, 24),
    Size(5, 9),
    Size(4, 8, 32),
    Size(16, 1, 16),
    Size(1, 80),
    Size(20, 2),
)
"""A prime number of them: whatever a law's requests repeat in, each meets each."""

LONG, LONG_SIZES = 130, (Size(2, 8), Size(1, 7, 7), Size(3, 4), Size(1, 16, 16), Size(2, 5))
FAR, FAR_SIZES = 300, (Size(1, 8), Size(2, 3), Size(1, 5, 5))
"""Lengths beyond which sizes are smaller, and these: a matrix of all pairs costs time. Beyond the
second there are as few examples as a mask allows."""

BATCHES = (2, 1, 3, 5, 2, 1, 3, 5, 17)
LAYERS = (0, 0, 1, 4)
BIASES: tuple[BiasKind, ...] = ("drawn", "drawn", "drawn", "none", "zero")

NOT_IN_THE_FIRST = ("behind", "front", "scattered")
"""Masks that leave the first example whole, so that one example has no padding."""


def sizes_of(case: Case) -> dict[str, Any]:
    """Return the fields of a case on which depends whether a layer can be built."""
    names = ("heads", "head_width", "width", "kv_heads", "layer", "biases", "trial")
    return {name: getattr(case, name) for name in names}
