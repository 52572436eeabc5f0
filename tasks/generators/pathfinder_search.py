"""The result of a search for paths, and the numbers that both of its implementations share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tasks.generators.pathfinder_settings import Settings

PROBES = 32
"""Places tried at random for a distractor's seed before all free ones are listed."""
MOST_TRIES = 100_000
"""Pairs of paths begun without one finished, after which the settings are refused."""


class Drawing(NamedTuple):
    """Paths and distractors before they are painted; R rows. A paddle is (y, x, direction)."""

    targets: npt.NDArray[np.int16]
    """(R, 2, contour_length, 3) the two paths from their seeds on."""
    distractors: npt.NDArray[np.int16]
    """(R, distractors, distractor_length, 3); all -1 where one found no room."""
    origin: npt.NDArray[np.int64]
    """(R,) which of the two paths bears a marker at its beginning."""
    counters: npt.NDArray[np.int64]
    """(R,) draws used so far by each row."""


class NoRoomError(Exception):
    """`MOST_TRIES` pairs of paths were begun and none was finished."""


def blank(settings: Settings, counters: npt.NDArray[np.int64]) -> Drawing:
    """Return a drawing with nothing on it yet."""
    rows = len(counters)
    return Drawing(
        targets=np.zeros((rows, 2, settings.contour_length, 3), np.int16),
        distractors=np.full(
            (rows, settings.distractors, settings.distractor_length, 3), -1, np.int16
        ),
        origin=np.zeros(rows, np.int64),
        counters=counters.copy(),
    )


def framed_border(side: int, width: int, frame: int) -> npt.NDArray[np.uint8]:
    """Return a flat mask whose outermost `width` pixels of image are taken.

    A frame that is never taken surrounds the image, so that no stamp leaves the mask.
    """
    image = np.full((side, side), 255, np.uint8)
    image[width : side - width, width : side - width] = 0
    return np.pad(image, frame).ravel()
