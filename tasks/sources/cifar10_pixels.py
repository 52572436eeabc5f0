"""Pictures of 32 x 32 pixels with their labels, made grey as Long Range Arena's are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tasks.contract import OnDefect
from tasks.sources.tables import bad_row

SIDE = 32
PIXELS = SIDE * SIDE
CLASSES = 10

U8 = npt.NDArray[np.uint8]

_RED, _GREEN, _BLUE = np.float32(0.2989), np.float32(0.5870), np.float32(0.1140)
_PICTURES_AT_ONCE = 1000


class Pictures(NamedTuple):
    """N pictures in the order of their file."""

    grey_NP: U8
    """(N, 1024) grey values, row by row."""
    labels_N: npt.NDArray[np.int64]


def grey(planes_N3P: U8) -> U8:
    """Return the grey values, (N, 1024), of red, green and blue ones, (N, 3, 1024).

    As `tf.image.rgb_to_grayscale` does with uint8: in float32, scaled by 1 / 255 (a product: a
    quotient gives another grey to 71 of the 2^24 colours), weighed, scaled by 255.5 and cut.
    A colour that is grey already keeps its value.
    """
    grey_NP = np.empty((len(planes_N3P), PIXELS), np.uint8)
    for start in range(0, len(planes_N3P), _PICTURES_AT_ONCE):
        here = slice(start, start + _PICTURES_AT_ONCE)
        scaled = planes_N3P[here].astype(np.float32) * np.float32(1 / 255)
        weighed = _RED * scaled[:, 0] + _GREEN * scaled[:, 1] + _BLUE * scaled[:, 2]
        grey_NP[here] = (weighed * np.float32(255.5)).astype(np.uint8)
    return grey_NP


def grey_of_colours(colours_NHWC: U8) -> U8:
    """Return the grey values, (N, 1024), of pictures (N, 32, 32, 3)."""
    return grey(colours_NHWC.reshape(-1, PIXELS, 3).transpose(0, 2, 1))


def labelled(
    name: str, grey_NP: U8, labels_N: npt.NDArray[np.integer], on_defect: OnDefect
) -> Pictures:
    """Return the pictures whose label is 0 ... 9; the others go to `on_defect`."""
    right_N = (labels_N >= 0) & (labels_N < CLASSES)
    for row in np.flatnonzero(~right_N):
        what = f"label {labels_N[row]} is not one of 0 ... {CLASSES - 1}; correct the row"
        on_defect(bad_row(name, int(row) + 1, what))
    return Pictures(grey_NP[right_N], labels_N[right_N].astype(np.int64))
