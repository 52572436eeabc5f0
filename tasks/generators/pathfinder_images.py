"""Rows of Pathfinder images: keys, labels, the choice of search, and one split per image."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable

import numpy as np

from lra.core.dataset import SplitName
from lra.core.errors import UsageError
from tasks.generators import pathfinder_lanes
from tasks.generators.counter import U64, below, row_keys, stream_key
from tasks.generators.pathfinder_drawing import paint
from tasks.generators.pathfinder_fixed import I64
from tasks.generators.pathfinder_search import Drawing, NoRoomError
from tasks.generators.pathfinder_settings import Settings, resolve
from tasks.generators.pathfinder_stamps import U8
from tasks.generators.pathfinder_tables import Tables, build

Search = Callable[[Tables, Settings, U64, I64], Drawing]

FEW_PADDLES = 5
"""Paths up to this length give so few images that the same one may turn up in two splits."""
ROOMY = 32
"""Pixels a side below which paths of any length have so little room that the same holds."""
COMPILED_FROM = 24
"""Pixels a side from which the compiled search is used."""
_MOST_ROUNDS = 400
_PIXELS_AT_ONCE = 1 << 22
_LABEL, _MARGIN, _FIRST = range(3)
"""The first two draws of a row, and where the search begins to count."""


def choose_search(side: int) -> Search:
    """Return the compiled search where numba is installed and worth its start, else numpy's.

    Both give the same drawings. Compiling takes as long as numpy does for a million tiny images.
    """
    if side < COMPILED_FROM or importlib.util.find_spec("numba") is None:
        return pathfinder_lanes.search
    from tasks.generators import pathfinder_kernel

    return pathfinder_kernel.search


def make(
    settings: Settings, split: SplitName, seed: int, rows: int, search: Search, first: int = 0
) -> tuple[U8, I64]:
    """Return images (rows, side, side) and labels (rows,) of a split, from row `first` on.

    A row is a function of (settings, split, seed, row number). An image may stand only in the split
    that its own bytes name (`home`), except where there are so many that two streams do not meet
    (`_plentiful`). Raises `UsageError` where no two paths are found.
    """
    images = np.zeros((rows, settings.side, settings.side), np.uint8)
    keys = row_keys(stream_key("pathfinder", split, seed), np.arange(first, first + rows))
    labels = below(keys, _LABEL, 2)
    margins = below(keys, _MARGIN, len(settings.paddle_margins))
    at_once = max(16, _PIXELS_AT_ONCE // settings.side**2)
    for number, margin in enumerate(settings.paddle_margins):
        tables = build(settings, margin)
        if not len(tables.first):
            raise UsageError(_no_seed(settings, margin))
        mine = np.flatnonzero(margins == number)
        for start in range(0, len(mine), at_once):
            part = mine[start : start + at_once]
            try:
                images[part] = _images(tables, settings, split, keys[part], labels[part], search)
            except NoRoomError:
                raise UsageError(_no_room(settings)) from None
    return images, labels


def home(image: U8) -> SplitName:
    """Return the split that an image belongs to by its bytes: half train, a quarter each else."""
    draw = hashlib.sha256(image.tobytes()).digest()[0] % 4
    return ("validation", "test", "train", "train")[draw]


def _plentiful(settings: Settings) -> bool:
    """Whether no image comes twice: long paths with room, all else as Long Range Arena set it.

    Other settings may hide the paths (faint lines in few grey levels), or leave only a few.
    """
    paddles = settings.contour_length
    if paddles <= FEW_PADDLES or settings.side < ROOMY:
        return False
    return settings == resolve(settings.side, {"contour_length": paddles})


def _images(
    tables: Tables, settings: Settings, split: SplitName, keys: U64, labels: I64, search: Search
) -> U8:
    """Search and paint until every row has an image that may stand in this split."""
    images = np.zeros((len(keys), settings.side, settings.side), np.uint8)
    counters = np.full(len(keys), _FIRST, np.int64)
    left = np.arange(len(keys))
    plentiful = _plentiful(settings)
    for _ in range(_MOST_ROUNDS):
        drawing = search(tables, settings, keys[left], counters[left])
        counters[left] = drawing.counters
        images[left] = paint(tables, settings, drawing, labels[left])
        if plentiful:
            return images
        left = left[[home(images[row]) != split for row in left]]
        if not len(left):
            return images
    raise NoRoomError


def _no_seed(settings: Settings, margin: int) -> str:
    return (
        f"pathfinder: a paddle of length {settings.paddle_length} and margin {margin} does not fit "
        f"between the bands of {settings.band} pixels on each side of {settings.side} x "
        f"{settings.side}; lower band, seed_distance or paddle_length"
    )


def _no_room(settings: Settings) -> str:
    return (
        f"pathfinder: no two paths of {settings.contour_length} paddles of length "
        f"{settings.paddle_length} were found in {settings.side} x {settings.side} pixels; "
        "shorten contour_length or paddle_length, lower seed_distance, or ask for a larger length"
    )
