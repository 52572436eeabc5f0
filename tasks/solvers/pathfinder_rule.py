"""The marker-distance rule: guess from how far apart the two discs stand, and nothing else.

A path's end lies at other distances from its own beginning than from the other path's. This rule
traces nothing: a model that scores no more need not trace either.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tasks.generators.pathfinder_fixed import I64
from tasks.generators.pathfinder_stamps import U8

_CORE = 64
"""Pixels of a marker's stamp from this value on must be bright for a marker to stand there."""
_PIXELS_AT_ONCE = 1 << 21


def find_markers(images: U8, marker: U8) -> I64:
    """Return the two likeliest marker places, (R, 2, 2), brightest first.

    A place counts by the faintest pixel that its disc would cover, relative to the disc.
    """
    rows, side = images.shape[:2]
    half = len(marker) // 2
    offsets = np.argwhere(marker >= _CORE) - half
    at_once = max(1, _PIXELS_AT_ONCE // side**2)
    places = np.zeros((rows, 2), np.int64)
    for start in range(0, rows, at_once):
        part = images[start : start + at_once].astype(np.float32)
        faintest = _faintest(part, offsets, marker).reshape(len(part), -1)
        places[start : start + at_once] = np.argsort(-faintest, axis=1, kind="stable")[:, :2]
    return np.stack([places // side, places % side], axis=2)


def marker_distance(train: tuple[U8, I64], test: tuple[U8, I64], marker: U8) -> float:
    """Return the test accuracy of guessing the commoner training label at each distance.

    Both are (images, labels). Distances are counted in half pixels; one that training never showed
    counts as label 0.
    """
    (seen, seen_labels), (asked, asked_labels) = train, test
    known, unknown = _distance(find_markers(seen, marker)), _distance(find_markers(asked, marker))
    votes = np.bincount(known, weights=2 * seen_labels - 1, minlength=unknown.max(initial=0) + 1)
    return float(((votes[unknown] > 0) == (asked_labels == 1)).mean())


def _distance(places: I64) -> I64:
    """Half pixels between two markers, (R,)."""
    apart: npt.NDArray[np.float64] = np.sqrt(((places[:, 0] - places[:, 1]) ** 2).sum(axis=1))
    return np.rint(2 * apart).astype(np.int64)


def _faintest(images: npt.NDArray[np.float32], offsets: I64, marker: U8) -> npt.NDArray[np.float32]:
    side, half = images.shape[1], len(marker) // 2
    framed = np.pad(images, [(0, 0), (half, half), (half, half)], constant_values=np.inf)
    faintest = np.full_like(images, np.inf)
    covered = np.zeros((side, side), np.float32)
    inside = np.pad(np.ones((side, side), np.float32), half)
    for y, x in offsets:
        weight = float(marker[half + y, half + x]) / 255
        rows, columns = slice(half + y, half + y + side), slice(half + x, half + x + side)
        np.minimum(faintest, framed[:, rows, columns] / weight, out=faintest)
        covered += inside[rows, columns]
    # A disc that the edge cuts has fewer pixels to speak against it.
    return faintest * np.sqrt(covered / len(offsets))
