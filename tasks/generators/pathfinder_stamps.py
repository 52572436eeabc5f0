"""Antialiased paddles, their overlap masks and marker discs as small 8-bit pictures ("stamps").

As in the original, each is drawn in black and white on a grid `antialias` times finer and shrunk
with the Lanczos-3 kernel to 8 bits, rows and columns one after the other. All in integers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tasks.generators.pathfinder_fixed import BITS, I64, ONE, PI, ceil, sin

U8 = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

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


class Discs(NamedTuple):
    """Marker discs as the original draws them, each shrunk with the whole image around it.

    Near an edge the kernel has fewer pixels to weigh, and a disc looks as it does nowhere else. So
    there is a picture for each place near an edge, and one for all others.
    """

    pictures: U8
    """(D, D, D, D) by row and column of the disc in a picture, then the picture's rows and
    columns."""
    side: int
    """Pixels a side of the image that they are for, at least D."""

    def at(self, tips: I64) -> tuple[I64, U8]:
        """Return the top left pixel of each disc's picture, (R, 2), and the pictures, (R, D, D);
        `tips` is (R, 2), (y, x) in the image."""
        size = len(self.pictures)
        place = np.where(tips < size // 2, tips, size // 2)
        place = np.maximum(place, tips - (self.side - size))
        return tips - place, self.pictures[place[:, 0], place[:, 1]]


def discs(radius: float, fine: int, side: int) -> Discs:
    """Return the marker discs of an image of `side` pixels."""
    size = min(side, len(disc(radius, fine)))
    at = np.arange(size * fine) - fine * np.arange(size)[:, None]
    squares = at[:, None, :, None] ** 2 + at[None, :, None, :] ** 2
    inside = squares * 4 <= round(2 * radius * fine) ** 2
    return Discs(shrink(inside.astype(np.uint8) * 255, size), side)


def shrink(image: U8, size: int) -> U8:
    """Resize square pictures (..., n, n) to (..., size, size) with the Lanczos-3 kernel."""
    weights = _lanczos(image.shape[-1], size)
    across = _to_byte(image.astype(np.int64) @ weights.T)
    return _to_byte(weights @ across).astype(np.uint8)


def _to_byte(sums: I64) -> I64:
    rounded: I64 = (sums + (1 << (_PRECISION - 1))) >> _PRECISION
    return rounded.clip(0, 255)


def _lanczos(fine: int, coarse: int) -> I64:
    """Weights (coarse, fine), each row summing to 2**22: sinc(x) sinc(x / 3) for |x| < 3."""
    # x = (numerator / (2 fine)) in coarse pixels between the centres of both grids' pixels.
    numerator = (2 * np.arange(fine) + 1) * coarse - (2 * np.arange(coarse)[:, None] + 1) * fine
    angle = PI * numerator // (2 * fine)
    weights = (_sinc(angle) * _sinc(angle // _LOBES)) >> BITS
    weights[np.abs(numerator) >= _LOBES * 2 * fine] = 0
    total = weights.sum(axis=1, keepdims=True)
    normal: I64 = ((weights << (_PRECISION + 1)) + total) // (2 * total)
    return normal


def _sinc(angle: I64) -> I64:
    return np.where(angle == 0, ONE, (sin(angle) << BITS) // np.where(angle == 0, 1, angle))


def _line(y: int, x: int, thickness: int, reach: int) -> Bools:
    """A line from the centre to (y, x) on a grid of 2 reach + 1 pixels, as Pillow draws it."""
    if thickness > 1:
        return _broad_line(y, x, thickness, reach)
    # One pixel for each step along the longer axis.
    steps = max(abs(y), abs(x))
    walk = np.arange(steps + 1)
    image = np.zeros((2 * reach + 1, 2 * reach + 1), dtype=bool)
    image[reach + _share(walk, y, steps), reach + _share(walk, x, steps)] = True
    return image


def _broad_line(y: int, x: int, thickness: int, reach: int) -> Bools:
    """A parallelogram with whole corners: pixels that reach into it along their row are lit."""
    more, less = thickness // 2, (thickness - 1) // 2
    left = np.array([_part(more * x, y, x), -_part(less * y, y, x)])
    right = np.array([-_part(less * x, y, x), _part(more * y, y, x)])
    end = np.array([y, x])
    corners = np.stack([left, left + end, right + end, right])
    rows, columns = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    lit: Bools = (rows >= corners[:, 0].min()) & (rows <= corners[:, 0].max())
    for corner, (down, across) in zip(corners, np.roll(corners, -1, axis=0) - corners, strict=True):
        inward = (columns - corner[1]) * down - (rows - corner[0]) * across
        lit &= (2 * inward + abs(down) > 0) | ((down == 0) & (inward == 0))
    return lit


def _part(share: int, y: int, x: int) -> int:
    """`share` over the length of (y, x), rounded to the nearest integer, halves to zero."""
    whole = 0
    while (2 * whole + 1) ** 2 * (y * y + x * x) < 4 * share * share:
        whole += 1
    return whole if share > 0 else -whole


def _share(walk: I64, end: int, steps: int) -> I64:
    """How far along one axis a walk of `steps` to `end` is, halves away from the start."""
    far: I64 = (2 * walk * abs(end) + steps) // (2 * steps)
    return far if end > 0 else -far


def _grown(images: Bools, radius: int) -> Bools:
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
