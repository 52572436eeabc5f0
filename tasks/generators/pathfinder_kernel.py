"""The search for paths, compiled by numba: row after row, the same draws as `pathfinder_lanes`.

A path's state is one array: its newest paddle (y, x, direction) and its newest pivot (y, x).
`tests/tasks/test_pathfinder_twins.py` holds the two searches to the same drawings.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import config, njit

from lra.core.hashing import source_hash
from tasks.generators.counter import GOLDEN, U64
from tasks.generators.pathfinder_fixed import I64
from tasks.generators.pathfinder_search import MOST_TRIES, PROBES, Drawing, NoRoomError, blank
from tasks.generators.pathfinder_settings import Settings
from tasks.generators.pathfinder_stage import Stage, lay_out
from tasks.generators.pathfinder_stamps import U8
from tasks.generators.pathfinder_tables import DEAD_END, FREE, OVERLAP, SEEDS, Tables

I16 = npt.NDArray[np.int16]
_Function = TypeVar("_Function", bound=Callable[..., Any])

_GOLDEN = np.uint64(GOLDEN)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_Y, _X, _DIRECTION, _PIVOT_Y, _PIVOT_X = range(5)


def _folder(asked: str) -> str:
    """Where machine code is kept: where asked for, beside the source, or in the user's cache.

    Constants of other files are in it, and numba looks at this one alone for edits: hence a folder
    for each state of all of them.
    """
    here = Path(__file__)
    beside = here.parent if os.access(here.parent, os.W_OK) else Path("~/.cache/numba").expanduser()
    return str((Path(asked) if asked else beside / "__pycache__") / source_hash(here))


config.CACHE_DIR = _folder(config.CACHE_DIR)  # type: ignore[attr-defined]


def _compiled(function: _Function) -> _Function:
    """Compile at the first call, and keep the machine code.

    Where its folder cannot be written, numba refuses to keep it: then every process compiles.
    """
    kept: Any
    try:
        kept = njit(cache=True)(function)
    except RuntimeError:
        kept = njit(function)
    return kept  # type: ignore[no-any-return]


def search(tables: Tables, settings: Settings, keys: U64, counters: I64) -> Drawing:
    """Return one drawing for each row, drawing on from (keys, counters), both (R,)."""
    drawing = blank(settings, counters)
    if not _search(lay_out(tables, settings), keys, *drawing):
        raise NoRoomError
    return drawing


@_compiled
def draw(key: np.uint64, index: int, bound: int) -> int:
    """A uniform integer in 0 ... bound - 1, the one that `counter.below` draws."""
    x = key + (np.uint64(index) + np.uint64(1)) * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    x = x ^ (x >> np.uint64(31))
    return int(((x >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@_compiled
def _search(
    stage: Stage, keys: U64, targets: I16, distractors: I16, origin: I64, counters: I64
) -> bool:
    mask, saved = np.empty_like(stage.border), np.empty_like(stage.border)
    paths = np.zeros((2, 5), np.int64)
    reached = np.zeros(len(stage.candidates), np.int64)
    for row in range(len(keys)):
        key, counter = keys[row], counters[row]
        counter = _targets(stage, mask, key, counter, paths, reached, targets[row])
        if counter < 0:
            return False
        for number in range(distractors.shape[1]):
            saved[:] = mask
            for _ in range(stage.distractor_tries):
                grown, counter = _distractor(
                    stage, mask, key, counter, paths[0], reached, distractors[row, number]
                )
                if grown:
                    break
                mask[:] = saved
                distractors[row, number] = -1
        origin[row] = draw(key, counter, 2)
        counters[row] = counter + 1
    return True


@_compiled
def _targets(
    stage: Stage, mask: U8, key: np.uint64, counter: int, paths: I64, reached: I64, targets: I16
) -> int:
    """Find two paths and return the counter after them, or -1."""
    for _ in range(MOST_TRIES):
        begun = _seeds(stage, key, counter, paths)
        counter += 2 + 2 * stage.paddle_tries
        if not begun:
            continue
        mask[:] = stage.border
        for snake in range(2):
            targets[snake, 0] = paths[snake, :3]
        grown = True
        for paddle in range(1, targets.shape[1]):
            for snake in range(2):
                if grown:
                    grown = _extend(stage, mask, key, counter, paths[snake], reached)
                    counter += stage.paddle_tries
                    targets[snake, paddle] = paths[snake, :3]
        if grown:
            # The original marks only the second path's last paddle as taken.
            _cover_last(stage, mask, paths[1])
            return counter
    return -1


@_compiled
def _seeds(stage: Stage, key: np.uint64, counter: int, paths: I64) -> bool:
    """The first seed amid the image, the second at a fixed distance from it."""
    turned = stage.first[draw(key, counter, len(stage.first))]
    rows, columns = stage.first_room[turned]
    place = draw(key, counter + 1, rows * columns)
    y = stage.first_low[turned, 0] + place // columns
    x = stage.first_low[turned, 1] + place % columns
    if not _begin(stage, paths[0], y, x, turned):
        return False
    for trial in range(stage.paddle_tries):
        turned = draw(key, counter + 2 + 2 * trial, SEEDS)
        around = draw(key, counter + 3 + 2 * trial, SEEDS)
        if _begin(stage, paths[1], y + stage.ring[around, 0], x + stage.ring[around, 1], turned):
            return True
    return False


@_compiled
def _begin(stage: Stage, path: I64, y: int, x: int, turned: int) -> bool:
    """Let a path begin with a seed; return whether its tail, head and pivot lie in the image."""
    path[_Y], path[_X], path[_DIRECTION] = y, x, turned
    path[_PIVOT_Y] = y + stage.pivots[turned, 0]
    path[_PIVOT_X] = x + stage.pivots[turned, 1]
    head_y, head_x = y + stage.heads[turned, 0], x + stage.heads[turned, 1]
    return (
        _inside(stage, y, x)
        and _inside(stage, head_y, head_x)
        and _inside(stage, path[_PIVOT_Y], path[_PIVOT_X])
    )


@_compiled
def _inside(stage: Stage, y: int, x: int) -> bool:
    return 0 <= y < stage.side and 0 <= x < stage.side


@_compiled
def _extend(stage: Stage, mask: U8, key: np.uint64, counter: int, path: I64, reached: I64) -> bool:
    """Add a paddle to a path and cover the one before; return whether that worked."""
    # Arrays one by one: numba counts references to all of a tuple's arrays wherever it is read.
    return _grow(
        mask,
        key,
        counter,
        path,
        reached,
        stage.side,
        stage.frame,
        stage.pitch,
        stage.paddle_tries,
        stage.advances,
        stage.candidates,
        stage.weights,
        stage.near_steps,
        stage.starts,
        stage.sharp,
        stage.steps,
        stage.values,
    )


@_compiled
def _grow(
    mask: U8,
    key: np.uint64,
    counter: int,
    path: I64,
    reached: I64,
    side: int,
    frame: int,
    pitch: int,
    tries: int,
    advances: I64,
    candidates: I64,
    weights: I64,
    near_steps: I64,
    starts: I64,
    sharp: I64,
    steps: I64,
    values: U8,
) -> bool:
    last = path[_DIRECTION]
    pivot_y = path[_PIVOT_Y] + advances[last, 0]
    pivot_x = path[_PIVOT_X] + advances[last, 1]
    total = 0
    for c in range(len(reached)):
        weight = weights[last, c]
        y, x = pivot_y + candidates[c, 0], pivot_x + candidates[c, 1]
        if weight > 0 and 0 <= y < side and 0 <= x < side:
            cell = (y + frame) * pitch + x + frame
            dimming = np.uint8(0)
            # Unsigned indices, here and below, spare numba its check for negative ones.
            for n in range(len(near_steps)):
                dimming = max(dimming, mask[np.uint64(cell + near_steps[n])])
            total += weight * (255 - np.int64(dimming))
        reached[c] = total
    if total < DEAD_END:
        return False
    for trial in range(tries):
        drawn = draw(key, counter + trial, total)
        c = 0
        while reached[c] <= drawn:
            c += 1
        y, x = pivot_y + candidates[c, 0], pivot_x + candidates[c, 1]
        cell = (y + frame) * pitch + x + frame
        overlaps = False
        for i in range(starts[SEEDS + c], sharp[SEEDS + c]):
            if np.int64(values[i]) + mask[np.uint64(cell + steps[i])] >= OVERLAP:
                overlaps = True
                break
        if not overlaps:
            cell = (path[_Y] + frame) * pitch + path[_X] + frame
            _cover(mask, cell, starts[last], starts[last + 1], steps, values)
            path[_Y], path[_X], path[_DIRECTION] = y, x, SEEDS + c
            path[_PIVOT_Y], path[_PIVOT_X] = pivot_y, pivot_x
            return True
    return False


@_compiled
def _cover_last(stage: Stage, mask: U8, path: I64) -> None:
    """Mark as taken what the newest paddle of a path covers."""
    cell = (path[_Y] + stage.frame) * stage.pitch + path[_X] + stage.frame
    turned = path[_DIRECTION]
    start, end = stage.starts[turned], stage.starts[turned + 1]
    _cover(mask, cell, start, end, stage.steps, stage.values)


@_compiled
def _cover(mask: U8, cell: int, start: int, end: int, steps: I64, values: U8) -> None:
    for i in range(start, end):
        place = np.uint64(cell + steps[i])
        mask[place] = max(mask[place], values[i])


@_compiled
def _distractor(
    stage: Stage, mask: U8, key: np.uint64, counter: int, path: I64, reached: I64, paddles: I16
) -> tuple[bool, int]:
    """Try to place one distractor; return (whether that worked, the counter after it)."""
    begun = _distractor_seed(stage, mask, key, counter, path)
    counter += stage.paddle_tries * (PROBES + 2)
    if not begun:
        return False, counter
    paddles[0] = path[:3]
    for paddle in range(1, len(paddles)):
        grown = _extend(stage, mask, key, counter, path, reached)
        counter += stage.paddle_tries
        if not grown:
            return False, counter
        paddles[paddle] = path[:3]
    _cover_last(stage, mask, path)
    return True, counter


@_compiled
def _distractor_seed(stage: Stage, mask: U8, key: np.uint64, counter: int, path: I64) -> bool:
    """Begin a distractor where its probe meets nothing."""
    area = stage.side * stage.side
    if (area - _taken(mask)) * 100 < area:
        return False
    for trial in range(stage.paddle_tries):
        offset = counter + trial * (PROBES + 2)
        turned = draw(key, offset, SEEDS)
        if not stage.open[turned]:
            return False
        place = -1
        for probe in range(PROBES):
            tail = draw(key, offset + 2 + probe, area)
            if _free(stage, mask, tail, turned):
                place = tail
                break
        if place < 0:
            place = _any_free(stage, mask, key, offset + 1, turned)
        if place < 0:
            return False
        if _begin(stage, path, place // stage.side, place % stage.side, turned):
            return True
    return False


@_compiled
def _taken(mask: U8) -> int:
    taken = 0
    for cell in range(len(mask)):
        taken += mask[cell] > FREE
    return taken


@_compiled
def _free(stage: Stage, mask: U8, tail: int, turned: int) -> bool:
    y, x = tail // stage.side, tail % stage.side
    cell = (y + stage.frame) * stage.pitch + x + stage.frame
    for step in stage.core_steps[turned]:
        if mask[cell + step] > FREE or stage.edge[cell + step] > 0:
            return False
    return True


@_compiled
def _any_free(stage: Stage, mask: U8, key: np.uint64, index: int, turned: int) -> int:
    """One of all tails whose probe is free, or -1."""
    found = 0
    for tail in range(stage.side * stage.side):
        found += _free(stage, mask, tail, turned)
    if found == 0:
        return -1
    left = draw(key, index, found)
    tail = -1
    while left >= 0:
        tail += 1
        left -= _free(stage, mask, tail, turned)
    return tail
