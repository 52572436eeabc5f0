"""Antialiased paddles, their overlap masks and marker discs as small 8-bit pictures ("stamps").

As in the original, each is drawn in black and white on a grid `antialias` times finer and shrunk
with the Lanczos-3 kernel to 8 bits, rows and columns one after the other. All in integers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tasks.generators.pathfinder_fixed import BITS, I64, ONE, PI, ceil, sin

U8 = npt.NDArray[np.uint8]

_LOBES = 3
_PRECISION = 22


def paddles(units: I64, *, length: int, thickness: int, margin: int, half: int, fine: int) -> U8:
    """Return line and mask stamps, (2, directions, 2 half + 1, 2 half + 1).

    `units` is (directions, 2), fixed-point (y, x). A line starts at the centre and runs `length`
    pixels; its mask is the line grown by `margin` pixels. `thickness` counts fine pixels.
    """
    reach = half * fine
    ends = ceil(length * fine * units)
    lines = np.stack([_line(int(y), int(x), thickness, reach) for y, x in ends])
    both = np.stack([lines, _grown(lines, margin * fine)])
    return shrink(both.astype(np.uint8) * 255, 2 * half + 1)


def disc(radius: float, fine: int) -> U8:
    """Return a marker disc, (2 half + 1, 2 half + 1), centred on the middle pixel.

    The disc's centre is the first fine pixel of that pixel, as in the original, hence a quarter
    pixel up and left of the pixel's own.
    """
    half = int(-(-radius // 1)) + _LOBES
    at = np.arange((2 * half + 1) * fine) - half * fine
    squares = at[:, None] ** 2 + at[None, :] ** 2
    inside = squares * 4 <= round(2 * radius * fine) ** 2
    return shrink(inside.astype(np.uint8) * 255, 2 * half + 1)


def shrink(image: U8, size: int) -> U8:
    """Resize square pictures (..., n, n) to (..., size, size) with the Lanczos-3 kernel."""
    weights = _lanczos(image.shape[-1], size)
    across = _to_byte(image.astype(np.int64) @ weights.T)
    return _to_byte(weights @ across).astype(np.uint8)


def _to_byte(sums: I64) -> I64:
    return np.clip((sums + (1 << (_PRECISION - 1))) >> _PRECISION, 0, 255)


def _lanczos(fine: int, coarse: int) -> I64:
    """Weights (coarse, fine), each row summing to 2**22: sinc(x) sinc(x / 3) for |x| < 3."""
    # x = (numerator / (2 fine)) in coarse pixels between the centres of both grids' pixels.
    numerator = (2 * np.arange(fine) + 1) * coarse - (2 * np.arange(coarse)[:, None] + 1) * fine
    angle = PI * numerator // (2 * fine)
    weights = (_sinc(angle) * _sinc(angle // _LOBES)) >> BITS
    weights[np.abs(numerator) >= _LOBES * 2 * fine] = 0
    total = weights.sum(axis=1, keepdims=True)
    return ((weights << (_PRECISION + 1)) + total) // (2 * total)


def _sinc(angle: I64) -> I64:
    return np.where(angle == 0, ONE, (sin(angle) << BITS) // np.where(angle == 0, 1, angle))


def _line(y: int, x: int, thickness: int, reach: int) -> npt.NDArray[np.bool_]:
    """A line from the centre to (y, x) on a grid of 2 reach + 1 pixels."""
    rows, columns = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    if thickness == 1:
        # One pixel for each step along the longer axis, as in Bresenham's line.
        steps = max(abs(y), abs(x))
        walk = np.arange(steps + 1)
        image = np.zeros(rows.shape, dtype=bool)
        image[reach + _share(walk, y, steps), reach + _share(walk, x, steps)] = True
        return image
    square = y * y + x * x
    along = rows * y + columns * x
    aside = 2 * (rows * x - columns * y)
    width = thickness * thickness * square
    within = (aside * aside < width) | ((aside * aside == width) & (aside > 0))
    return (along >= 0) & (along <= square) & within


def _share(walk: npt.NDArray[np.intp], end: int, steps: int) -> npt.NDArray[np.intp]:
    return np.sign(end) * ((2 * walk * abs(end) + steps) // (2 * steps))


def _grown(images: npt.NDArray[np.bool_], radius: int) -> npt.NDArray[np.bool_]:
    """Dilate pictures (..., n, n) with a disc."""
    size = images.shape[-1]
    framed = np.pad(images, [(0, 0)] * (images.ndim - 2) + [(radius, radius)] * 2)
    grown = np.zeros_like(images)
    for y, x in disc_offsets(radius):
        top, left = radius + int(y), radius + int(x)
        grown |= framed[..., top : top + size, left : left + size]
    return grown


def disc_offsets(radius: int) -> I64:
    """Return all integer (y, x) within `radius` of the origin, (offsets, 2)."""
    y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    return np.argwhere(y * y + x * x <= radius * radius) - radius
