"""From the geometry of paths to grey images."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tasks.generators.pathfinder_fixed import I64
from tasks.generators.pathfinder_search import Drawing
from tasks.generators.pathfinder_settings import Settings
from tasks.generators.pathfinder_stamps import U8, disc
from tasks.generators.pathfinder_tables import Tables

_UNIT = 1000
"""A contrast of 1.0 in the integers that brightnesses are counted in."""


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
    rows = len(labels)
    marker = disc(settings.marker_radius, settings.antialias)
    frame = max(tables.half, len(marker) // 2) + 1
    canvas = np.zeros((rows, *(settings.side + 2 * frame,) * 2), np.int32)
    lines = tables.stamps.astype(np.int32)
    target = round(_UNIT * settings.snake_contrast * settings.paddle_contrast)
    other = round(_UNIT * settings.snake_contrast)
    for paddles, contrast in ((drawing.targets, target), (drawing.distractors, other)):
        stamps = lines * contrast
        for paddle in paddles.reshape(rows, -1, 3).swapaxes(0, 1).astype(np.int64):
            there = np.flatnonzero(paddle[:, 2] >= 0)
            _stamp(canvas, there, paddle[there, :2] + frame, stamps[paddle[there, 2]])
    for tip in marker_tips(drawing, labels).swapaxes(0, 1):
        _stamp(canvas, np.arange(rows), tip + frame, marker.astype(np.int32)[None] * _UNIT)
    image = canvas[:, frame:-frame, frame:-frame]
    return _levels(_scaled(image), settings.levels)


def _stamp(
    canvas: npt.NDArray[np.int32], rows: I64, place: I64, stamp: npt.NDArray[np.int32]
) -> None:
    """Brighten the canvas (R, P, P) of `rows` by one stamp each, centred on `place`."""
    pitch, size = canvas.shape[1], stamp.shape[1]
    window = np.arange(size) - size // 2
    around = (window[:, None] * pitch + window).ravel()
    cells = (rows * pitch + place[:, 0]) * pitch + place[:, 1]
    flat, at = canvas.reshape(-1), cells[:, None] + around
    flat[at] = np.maximum(flat[at], stamp.reshape(-1, size * size))


def _scaled(image: npt.NDArray[np.int32]) -> U8:
    """Stretch each image so that it spans 0 ... 255, rounding halves up."""
    above = (image - image.min(axis=(1, 2), keepdims=True)).reshape(len(image), -1)
    span = above.max(axis=1, initial=1)
    grey = np.zeros(above.shape, np.uint8)
    # Nearly all pixels are the darkest, and need no division.
    lit = np.flatnonzero(above)
    stretch = span[lit // above.shape[1]]
    grey.reshape(-1)[lit] = (above.reshape(-1)[lit] * 510 + stretch) // (2 * stretch)
    return grey.reshape(image.shape)


def _levels(grey: U8, levels: int) -> U8:
    """Keep `levels` equally wide bins of grey, spread over 0 ... 255 again."""
    values = ((np.arange(256) * levels) >> 8) * 255 // (levels - 1)
    return values.astype(np.uint8)[grey]
