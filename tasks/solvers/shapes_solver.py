"""Tells the shape of a picture by laying every shape, in every size, at every place over it.

The best is the one that most pixels fit: those inside that have the commonest grey inside, and
those outside that have the commonest outside, noise being rare.

R pictures, P pixels, T templates, G grey values that occur
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tasks.generators.shapes import LARGEST_PERCENT, SHAPES, covered_pixels

_TEMPLATES_AT_ONCE = 4096
_PICTURES_AT_ONCE = 512


def told_shapes(
    pictures_RP: npt.NDArray[np.integer], *, side: int, shapes: int, smallest_percent: int
) -> npt.NDArray[np.int64]:
    """Return the class of each picture, among the first `shapes`."""
    parts = range(0, len(pictures_RP), _PICTURES_AT_ONCE)
    told = [
        _told(pictures_RP[start : start + _PICTURES_AT_ONCE], side, shapes, smallest_percent)
        for start in parts
    ]
    return np.concatenate(told)


def _told(
    pictures_RP: npt.NDArray[np.integer], side: int, shapes: int, smallest_percent: int
) -> npt.NDArray[np.int64]:
    greys = np.unique(pictures_RP)
    of_grey_GRP = (pictures_RP == greys[:, None, None]).astype(np.float32)
    in_all_GR1 = of_grey_GRP.sum(axis=2, keepdims=True)
    best_R = np.full(len(pictures_RP), -1.0)
    classes_R = np.zeros(len(pictures_RP), dtype=np.int64)
    for templates_TP, shape in _templates(side, shapes, smallest_percent):
        inside_GRT = of_grey_GRP @ templates_TP.T
        fits_RT = inside_GRT.max(axis=0) + (in_all_GR1 - inside_GRT).max(axis=0)
        fit_R = fits_RT.max(axis=1)
        better_R = fit_R > best_R
        best_R[better_R], classes_R[better_R] = fit_R[better_R], shape
    return classes_R


def _templates(
    side: int, shapes: int, smallest_percent: int
) -> Iterator[tuple[npt.NDArray[np.float32], int]]:
    """Every place of every size of every shape, (T, P), a share of them at a time."""
    smallest, largest = side * smallest_percent // 100, side * LARGEST_PERCENT // 100
    places = np.array(
        [
            (extent, across, down)
            for extent in range(smallest, largest + 1)
            for across in range(extent, 2 * side - extent + 1)
            for down in range(extent, 2 * side - extent + 1)
        ]
    )
    for shape, name in enumerate(SHAPES[:shapes]):
        for start in range(0, len(places), _TEMPLATES_AT_ONCE):
            extents, across, down = places[start : start + _TEMPLATES_AT_ONCE].T
            covered_TYX = covered_pixels(name, extents, across, down, side)
            yield covered_TYX.reshape(len(extents), -1).astype(np.float32), shape
