"""Pictures as numpy arrays: one file of images, grey or colour, and one of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lra.core.errors import DataError
from tasks.contract import OnDefect
from tasks.sources.cifar10_pixels import PIXELS, SIDE, Pictures, grey_of_colours, labelled
from tasks.sources.files import unpacked
from tasks.sources.npy import read_npy


def array_pictures(images: Path, labels: Path, on_defect: OnDefect) -> Pictures:
    """Return the pictures of (N, 32, 32) or (N, 32, 32, 3) uint8 with their N labels."""
    pixels = read_npy(str(images), unpacked(images))
    numbers = read_npy(str(labels), unpacked(labels))
    if pixels.dtype != np.uint8 or pixels.shape[1:] not in ((SIDE, SIDE), (SIDE, SIDE, 3)):
        raise DataError(
            f"'{images}' holds {pixels.dtype} of {pixels.shape}; "
            f"give uint8 of (N, {SIDE}, {SIDE}) or (N, {SIDE}, {SIDE}, 3)"
        )
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise DataError(
            f"'{labels}' holds {numbers.dtype} of {numbers.shape}; give integers of (N,)"
        )
    if len(pixels) != len(numbers):
        raise DataError(
            f"'{images}' holds {len(pixels)} pictures, '{labels.name}' {len(numbers)} labels; "
            f"copy or download both again"
        )
    grey_NP = grey_of_colours(pixels) if pixels.ndim == 4 else pixels.reshape(-1, PIXELS)
    return labelled(str(labels), grey_NP, numbers, on_defect)
