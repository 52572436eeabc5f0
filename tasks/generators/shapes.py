"""Grey pictures of one shape each: the offline stand-in for image classification.

Shape and ground take two different grey levels, either the brighter one; size and place vary, and
a share of the pixels is noise. No single pixel tells the shape, nor do the grey levels that there
are; how often they stand does in part: the second largest count is about the shape's area
(`shapes_rule`).
All geometry is in half pixels and integers, so that the same bytes come out everywhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tasks.generators.counter import U64, below
from tasks.generators.disjoint import Drawn

Offsets = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SHAPES = (
    "disc",
    "square",
    "triangle",
    "plus",
    "cross",
    "ring",
    "frame",
    "diamond",
    "rows",
    "columns",
)
"""Class i is shape i."""
NARROWEST = 6
"""Width in pixels from which on no two shapes look the same, whatever their sizes and places; a
disc 5 wide may be a square."""
FRAMED = 11
"""Pixels a side from which on a frame never runs along all four edges, where it would look like a
square in the other of the two greys."""
LARGEST_PERCENT = 90
"""Width of the largest shape in percent of the picture's."""

_LABEL, _GROUND, _STEP, _EXTENT, _ACROSS, _DOWN, _PIXELS = 0, 1, 2, 3, 4, 5, 16
"""Where in a row's stream each kind of draw begins."""


def draw_shapes(
    keys_R: U64,
    *,
    side: int,
    shapes: int,
    smallest_percent: int,
    levels: int,
    noise_percent: int,
) -> Drawn:
    """Return one picture of side x side pixels, row by row, for each key, with its shape's class
    among the first `shapes`.

    A shape is `smallest_percent` to 90 % as wide as the picture, and should be at least `NARROWEST`
    pixels wide; `levels` grey levels are spread evenly over 0 ... 255.
    """
    labels_R = below(keys_R, _LABEL, shapes)
    inside_RYX = _inside(keys_R, labels_R, side, smallest_percent)
    ground_R = below(keys_R, _GROUND, levels)
    # At least levels // 4 levels apart, either way round.
    least = max(1, levels // 4)
    shape_R = (ground_R + least + below(keys_R, _STEP, levels - 2 * least + 1)) % levels
    picture_RYX = np.where(inside_RYX, shape_R[:, None, None], ground_R[:, None, None])

    pixel_RP = picture_RYX.reshape(len(keys_R), side * side)
    index_P = _PIXELS + 2 * np.arange(side * side)
    noisy_RP = below(keys_R[:, None], index_P, 100) < noise_percent
    noise_RP = below(keys_R[:, None], index_P + 1, levels)
    grey_RP = np.where(noisy_RP, noise_RP, pixel_RP) * 255 // (levels - 1)
    tokens_RIP = grey_RP.astype(np.uint8)[:, None, :]
    return Drawn(tokens_RIP, np.ones(tokens_RIP.shape, dtype=np.bool_), labels_R)


def _inside(keys_R: U64, labels_R: npt.NDArray[np.int64], side: int, smallest_percent: int) -> Mask:
    """Which pixels a shape covers, (rows, side, side)."""
    smallest, largest = side * smallest_percent // 100, side * LARGEST_PERCENT // 100
    extent_R = smallest + below(keys_R, _EXTENT, largest - smallest + 1)
    room_R = 2 * side - 2 * extent_R + 1
    across_R = extent_R + below(keys_R, _ACROSS, room_R)
    down_R = extent_R + below(keys_R, _DOWN, room_R)
    inside_RYX = np.zeros((len(keys_R), side, side), dtype=np.bool_)
    for shape, name in enumerate(SHAPES):
        of_R = labels_R == shape
        if of_R.any():
            places = extent_R[of_R], across_R[of_R], down_R[of_R]
            inside_RYX[of_R] = covered_pixels(name, *places, side)
    return inside_RYX


def covered_pixels(
    name: str,
    extent_R: npt.NDArray[np.int64],
    across_R: npt.NDArray[np.int64],
    down_R: npt.NDArray[np.int64],
    side: int,
) -> Mask:
    """Return which pixels a shape covers, (rows, side, side): half its width and where its centre
    is, all in half pixels."""
    centres = 2 * np.arange(side) + 1
    x_RYX = (centres - across_R[:, None])[:, None, :]
    y_RYX = (centres - down_R[:, None])[:, :, None]
    return _covers(name, x_RYX, y_RYX, extent_R[:, None, None])


def _covers(name: str, x: Offsets, y: Offsets, extent: Offsets) -> Mask:
    """Which offsets from the centre a shape of this half width covers; all in half pixels."""
    stroke = np.maximum(2, extent // 4)
    far = np.maximum(abs(x), abs(y))
    box: Mask = far <= extent
    covered: Mask
    if name == "disc":
        covered = x * x + y * y <= extent * extent
    elif name == "square":
        covered = far <= extent - stroke // 2
    elif name == "triangle":
        covered = box & (2 * abs(x) <= y + extent)
    elif name == "plus":
        covered = box & (np.minimum(abs(x), abs(y)) <= stroke // 2)
    elif name == "cross":
        covered = box & (abs(abs(x) - abs(y)) <= stroke // 2)
    elif name == "ring":
        square = x * x + y * y
        covered = (square <= extent * extent) & (square > (extent - stroke) ** 2)
    elif name == "frame":
        covered = box & (far > extent - stroke)
    elif name == "diamond":
        covered = abs(x) + abs(y) <= extent
    else:
        along = y if name == "rows" else x
        covered = box & ((along + extent) // (2 * np.maximum(1, extent // 6)) % 2 == 0)
    return covered
