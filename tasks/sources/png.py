"""Pixels of a PNG of known size."""

from __future__ import annotations

import io
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]


def png_pixels(content: bytes, side: int, modes: Collection[str]) -> U8:
    """Return the pixels as stored, (side, side) or, of colours, (side, side, 3).

    `modes` are those of Pillow that are taken: "L" is 8-bit grey, "RGB" 8-bit colour. Raises
    `ValueError` saying what is wrong with the picture and what to do.
    """
    from PIL import Image

    if not content:
        raise ValueError("is empty; copy or unpack it again")
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
            size, mode = picture.size, picture.mode
            if size == (side, side) and mode in modes:
                return np.asarray(picture)
    # Pillow has no error of its own for damage: a bad checksum is a SyntaxError.
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError("is no whole PNG; copy or unpack it again") from error
    if size != (side, side):
        raise ValueError(
            f"has {size[0]} x {size[1]} pixels, not {side} x {side}; give one of that size"
        )
    wanted = " or ".join(sorted(modes))
    raise ValueError(f"has pixels of mode {mode}, not {wanted}; convert it")
