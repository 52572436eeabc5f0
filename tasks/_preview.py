"""Examples as a person reads them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_SHADES = " ░▒▓█"
_WIDEST = 64
"""Pixels a line at most; of a larger picture every other pixel is left out, and so on."""


def text(tokens: npt.NDArray[np.integer]) -> str:
    """Return bytes + 1 as a quoted string."""
    return repr(bytes((tokens - 1).astype(np.uint8)).decode(errors="replace"))


def picture(tokens: npt.NDArray[np.integer]) -> str:
    """Return the grey values of a square picture, row by row, as lines of shaded blocks."""
    side = math.isqrt(len(tokens))
    step = -(-side // _WIDEST)
    grey_YX = tokens.reshape(side, side)[::step, ::step].astype(np.int64)
    rows = (grey_YX * len(_SHADES) // 256).tolist()
    # Two characters a pixel: a character is about twice as high as wide.
    return "\n".join("".join(2 * _SHADES[shade] for shade in row) for row in rows)
