"""The pictures that rules of thumb look at."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from lra.core.dataset import Split

MOST = 20_000
"""Pictures of a split; the rules' answers hardly depend on more."""


def first_pictures(
    split: Split, shape: tuple[int, ...]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the first pictures of a split, (rows, *shape), and their labels."""
    rows = min(len(split), MOST)
    tokens = split.tokens[: rows * math.prod(shape)].astype(np.uint8)
    return tokens.reshape(rows, *shape), split.labels[:rows].astype(np.int64)
