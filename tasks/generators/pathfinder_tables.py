"""Moves of a paddle, as tables: no offset depends on where it stands, only on its direction.

Directions 0 ... 359 are the orientations that a seed draws, -180 ... 179 degrees; direction
360 + c is that of candidate c, one of the pixels at which an added paddle may end. A paddle stands
at its tail if a seed and at its head otherwise, so the stamp of direction 360 + c runs backwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tasks.generators import pathfinder_fixed as fixed
from tasks.generators.pathfinder_fixed import I64
from tasks.generators.pathfinder_settings import Settings
from tasks.generators.pathfinder_stamps import U8, disc_offsets, paddles

SEEDS = 360
OVERLAP = 459
"""Two masks may add up to less than this, 1.8 times a full mask of 255."""
FREE = 76
"""A mask up to this, 0.3 of a full one, leaves its pixel free for a seed."""
_WEIGHT_BITS = 16
DEAD_END = 1 + (255 << _WEIGHT_BITS) // 10_000
"""A path ends where all candidates' weights add up to less than 1e-4 of one full weight."""
_CORNERS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


class Tables(NamedTuple):
    """All that the search needs for one paddle margin. S = 360 + C directions, C candidates."""

    side: int
    padding: int
    half: int
    """A stamp is 2 half + 1 pixels high and wide, its origin in the middle."""
    stamps: U8
    """(S, 2 half + 1, 2 half + 1) lines."""
    masks: U8
    """(S, 2 half + 1, 2 half + 1) the same grown by the margin: where no other may go."""
    heads: I64
    """(360, 2) from a seed's tail to its head."""
    pivots: I64
    """(360, 2) from a seed's tail to its pivot, which is `margin` behind the tail."""
    advances: I64
    """(S, 2) from one pivot to the next, `margin` beyond the paddle's head."""
    candidates: I64
    """(C, 2) from a pivot to the pixels at which the next paddle may end."""
    weights: I64
    """(S, C) 16-bit cos^2 of `continuity` times the turn, 0 from 90 degrees on."""
    near: I64
    """(O, 2) offsets whose masks dim a candidate: a disc of radius `margin`."""
    core: I64
    """(360, Q, 2) offsets that must be free for a seed, the last one repeated to fill up."""
    open: npt.NDArray[np.bool_]
    """(360,) whether a seed may have this direction; see `_open`."""
    first: I64
    """Directions of a first seed for which there is any place amid the image."""
    first_low: I64
    """(360, 2) top left tail of a first seed that keeps outside the band."""
    first_room: I64
    """(360, 2) number of rows and columns of such tails."""
    ring: I64
    """(360, 2) from the first seed's tail to the second's."""


def build(settings: Settings, margin: int) -> Tables:
    """Return the tables for one of the settings' paddle margins."""
    length = settings.paddle_length
    reach = length + margin
    degrees = np.arange(-180, 180) * fixed.PI // 180
    candidates = _candidates(reach)
    angles = np.concatenate([degrees, fixed.direction(candidates[:, 0], candidates[:, 1])])
    units = np.stack([fixed.sin(angles), fixed.cos(angles)], axis=1)
    drawn = np.concatenate([units[:SEEDS], -units[SEEDS:]])
    half = length + margin + int(-(-settings.paddle_thickness // 1))
    stamps, masks = paddles(
        drawn,
        length=length,
        thickness=settings.fine_thickness,
        margin=margin,
        half=half,
        fine=settings.antialias,
    )
    heads = fixed.ceil(length * units[:SEEDS])
    core = _core(masks[:SEEDS], shift=1 if settings.probe == "original" else 0)
    open_ = _open(core) if settings.probe == "original" else np.ones(SEEDS, bool)
    low = settings.band - core.min(axis=1)
    high = settings.side - 1 - settings.band - core.max(axis=1)
    inside = np.arange(SEEDS) * fixed.PI // 180
    ring = np.stack([fixed.sin(inside), fixed.cos(inside)], axis=1)
    return Tables(
        side=settings.side,
        padding=settings.padding,
        half=half,
        stamps=stamps,
        masks=masks,
        heads=heads,
        pivots=heads + fixed.ceil(-reach * units[:SEEDS]),
        advances=fixed.ceil((length + 2 * margin) * units),
        candidates=candidates,
        weights=_weights(angles, settings.continuity),
        near=disc_offsets(margin),
        core=core,
        open=open_,
        first=np.flatnonzero(open_ & (high >= low).all(axis=1)),
        first_low=low,
        first_room=high - low + 1,
        ring=fixed.nearest(settings.seed_distance * ring),
    )


def _candidates(reach: int) -> I64:
    """The different pixels met on a circle of radius `reach`, one sample per pixel of arc."""
    samples = int(fixed.ceil(np.array(2 * fixed.PI * reach)))
    angles = np.arange(samples) * fixed.ONE // reach
    circle = np.stack([fixed.sin(angles), fixed.cos(angles)], axis=1)
    return np.unique(fixed.floor(reach * circle), axis=0)


def _weights(angles: I64, continuity: float) -> I64:
    turn = np.abs(angles[:, None] - angles[None, SEEDS:])
    turn = np.minimum(turn, 2 * fixed.PI - turn)
    bent = np.minimum(turn * round(continuity * 1000) // 1000, fixed.PI // 2)
    cosine = np.maximum(fixed.cos(bent), 0)
    return (cosine * cosine) >> (2 * fixed.BITS - _WEIGHT_BITS)


def _core(masks: U8, shift: int) -> I64:
    """Offsets of a seed's fullest mask pixels, moved down and right by `shift`, (360, Q, 2)."""
    half = masks.shape[-1] // 2
    found = [np.argwhere(mask == mask.max()) - half + shift for mask in masks]
    longest = max(len(offsets) for offsets in found)
    return np.stack([np.pad(o, [(0, longest - len(o)), (0, 0)], mode="edge") for o in found])


def _open(core: I64) -> npt.NDArray[np.bool_]:
    """Directions in which the probe never lies wholly outside the image, wherever a seed stands.

    The original looks for a seed's place by dilating its mask with the probe, a paddle's mask one
    pixel below and to the right of where the paddle will lie. Where the probe of a corner pixel
    sees nothing of the image, the dilation is a negative number there, upon which the original
    finds that no place is free at all.
    """
    corners = [(core[..., 0] * down <= 0) & (core[..., 1] * right <= 0) for down, right in _CORNERS]
    return np.asarray(np.stack(corners).any(axis=2).all(axis=0))
