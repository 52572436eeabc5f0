"""From the geometry of paths to grey images."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tasks.generators.pathfinder_fixed import I64
from tasks.generators.pathfinder_search import Drawing
from tasks.generators.pathfinder_settings import Settings
from tasks.generators.pathfinder_stamps import U8, discs
from tasks.generators.pathfinder_tables import Tables

Ranks = npt.NDArray[np.int16]
"""Brightnesses by their ranks in `Shades.brightness`."""


def marker_tips(drawing: Drawing, labels: I64) -> npt.NDArray[np.int64]:
    """Return where the two markers stand, (R, 2, 2).

    The first is the beginning of one path; the second the end of the same path (label 1) or of the
    other (label 0).
    """
    rows = np.arange(len(labels))
    end = np.where(labels == 1, drawing.origin, 1 - drawing.origin)
    first = drawing.targets[rows, drawing.origin, 0, :2]
    second = drawing.targets[rows, end, -1, :2]
    return np.stack([first, second], axis=1).astype(np.int64)


def paint(tables: Tables, settings: Settings, drawing: Drawing, labels: I64) -> U8:
    """Return grey images (R, side, side): the brightest of all stamps, scaled to 0 ... 255."""
    rows, frame = len(labels), tables.half + 1
    shades = Shades.of(settings)
    canvas = np.zeros((rows, *(settings.side + 2 * frame,) * 2), np.int16)
    for paddles, ranks in (
        (drawing.targets, shades.target),
        (drawing.distractors, shades.distractor),
    ):
        stamps = ranks[tables.stamps]
        for paddle in paddles.reshape(rows, -1, 3).swapaxes(0, 1).astype(np.int64):
            there = np.flatnonzero(paddle[:, 2] >= 0)
            corner = paddle[there, :2] + frame - tables.half
            _stamp(canvas, there, corner, stamps[paddle[there, 2]])
    marks = discs(settings.marker_radius, settings.antialias, settings.side)
    for tip in marker_tips(drawing, labels).swapaxes(0, 1):
        corner, pictures = marks.at(tip)
        _stamp(canvas, np.arange(rows), corner + frame, shades.marker[pictures])
    image = canvas[:, frame:-frame, frame:-frame]
    return _levels(stretched(image, shades.brightness), settings.levels)


class Shades(NamedTuple):
    """All brightnesses that stamps have, in their order; images are painted in their ranks.

    A stamp's value v has brightness v / 255 times the contrast, a marker v / 255. As in the
    original, a line's is computed in single precision and a marker's in double. Stretched to
    0 ... 255, many would lie midway between two greys, and that rounding decides for one of them.
    A single operation rounds alike on every machine.
    """

    brightness: npt.NDArray[np.float64]
    """(K,) from dark to bright, the first 0."""
    target: npt.NDArray[np.int16]
    """(256,) the rank of each value of a line of the two paths."""
    distractor: npt.NDArray[np.int16]
    marker: npt.NDArray[np.int16]

    @classmethod
    def of(cls, settings: Settings) -> Shades:
        """Return the shades of these contrasts."""
        values = np.arange(256)
        lines = values.astype(np.float32) / np.float32(255)
        target = settings.snake_contrast * settings.paddle_contrast
        kinds = [
            (lines * np.float32(target)).astype(np.float64),
            (lines * np.float32(settings.snake_contrast)).astype(np.float64),
            values / 255,
        ]
        brightness = np.unique(np.concatenate(kinds))
        ranks = (np.searchsorted(brightness, kind).astype(np.int16) for kind in kinds)
        return cls(brightness, *ranks)


def _stamp(canvas: Ranks, rows: I64, corner: I64, stamp: Ranks) -> None:
    """Brighten the canvas (R, P, P) of `rows` by one stamp each, with its top left at `corner`."""
    pitch, size = canvas.shape[1], stamp.shape[1]
    window = np.arange(size)
    around = (window[:, None] * pitch + window).ravel()
    cells = (rows * pitch + corner[:, 0]) * pitch + corner[:, 1]
    flat, at = canvas.reshape(-1), cells[:, None] + around
    flat[at] = np.maximum(flat[at], stamp.reshape(-1, size * size))


def stretched(image: Ranks, brightness: npt.NDArray[np.float64]) -> U8:
    """Stretch each image (R, side, side) so that it spans 0 ... 255, rounding halves up."""
    ranks = image.reshape(len(image), -1)
    low, high = ranks.min(axis=1), ranks.max(axis=1)
    span = brightness[high] - brightness[low]
    stretch = 255 / np.where(span > 0, span, 1)
    grey = np.zeros(ranks.shape, np.uint8)
    # Nearly all pixels are the darkest, and stay 0.
    lit = np.flatnonzero(ranks > low[:, None])
    row = lit // ranks.shape[1]
    above = brightness[ranks.reshape(-1)[lit]] - brightness[low][row]
    grey.reshape(-1)[lit] = above * stretch[row] + 0.5
    return grey.reshape(image.shape)


def _levels(grey: U8, levels: int) -> U8:
    """Keep `levels` equally wide bins of grey, spread over 0 ... 255 again."""
    values = ((np.arange(256) * levels) >> 8) * 255 // (levels - 1)
    return values.astype(np.uint8)[grey]
