"""Trees of ListOps in flat arrays, level by level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

OPERATORS = ("MIN", "MAX", "MED", "SM")
DIGITS = 10
CLOSE = DIGITS + len(OPERATORS)
"""Symbols: 0 ... 9 digits, 10 ... 13 the operators in order, 14 the closing bracket."""


@dataclass(frozen=True)
class Level:
    """All nodes of one depth, tree by tree; an operator's arguments lie together in the next."""

    trees: Ints
    """Trees that reach this depth, ascending."""
    nodes_per_tree: Ints
    operators_per_tree: Ints
    symbols: Bytes
    """One per node."""
    args: Ints
    """One per operator node."""
