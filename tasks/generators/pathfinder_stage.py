"""The tables laid out for compiled code: flat masks, and only the pixels that count."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tasks.generators.pathfinder_fixed import I64
from tasks.generators.pathfinder_search import framed_border
from tasks.generators.pathfinder_settings import Settings
from tasks.generators.pathfinder_stamps import U8
from tasks.generators.pathfinder_tables import OVERLAP, Tables


class Stage(NamedTuple):
    """The tables as the compiled code reads them; `steps` lead through a mask laid flat."""

    side: int
    frame: int
    pitch: int
    paddle_tries: int
    distractor_tries: int
    border: U8
    """A fresh mask: the padding is taken."""
    edge: U8
    """The outermost pixels of the image, taken for seeds of distractors."""
    heads: I64
    pivots: I64
    advances: I64
    candidates: I64
    weights: I64
    near_steps: I64
    core_steps: I64
    open: U8
    first: I64
    first_low: I64
    first_room: I64
    ring: I64
    starts: I64
    """(S + 1,) where the mask pixels of each direction begin in `steps` and `values`."""
    sharp: I64
    """(S,) where those end that can overlap another mask; they come first."""
    steps: I64
    values: U8


def lay_out(tables: Tables, settings: Settings) -> Stage:
    """Return the tables of one margin for `pathfinder_kernel`."""
    frame = tables.half + 1
    pitch = settings.side + 2 * frame
    flat = np.array([pitch, 1])
    steps, values, sharp, starts = [], [], [], [0]
    for mask in tables.masks:
        places = np.argwhere(mask > 0)
        strength = mask[mask > 0]
        order = np.argsort(strength, kind="stable")[::-1]
        steps.append((places[order] - tables.half) @ flat)
        values.append(strength[order])
        sharp.append(starts[-1] + np.count_nonzero(strength.astype(int) + 255 >= OVERLAP))
        starts.append(starts[-1] + len(order))
    return Stage(
        side=settings.side,
        frame=frame,
        pitch=pitch,
        paddle_tries=settings.paddle_retries + 1,
        distractor_tries=settings.distractor_retries + 1,
        border=framed_border(settings.side, settings.padding, frame),
        edge=framed_border(settings.side, 1, frame),
        heads=tables.heads,
        pivots=tables.pivots,
        advances=tables.advances,
        candidates=tables.candidates,
        weights=tables.weights,
        near_steps=tables.near @ flat,
        core_steps=tables.core @ flat,
        open=tables.open.astype(np.uint8),
        first=tables.first,
        first_low=tables.first_low,
        first_room=tables.first_room,
        ring=tables.ring,
        starts=np.array(starts),
        sharp=np.array(sharp),
        steps=np.concatenate(steps),
        values=np.concatenate(values),
    )
