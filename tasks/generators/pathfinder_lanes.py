"""The search for paths in plain numpy: many images at once, each in a lane of its own.

Each step moves all lanes that stand before the same kind of decision. A lane draws only from its
row's key and counter, so what a row becomes does not depend on its neighbours; the compiled twin,
`pathfinder_kernel`, makes the same draws one row after the other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tasks.generators.counter import U64, below
from tasks.generators.pathfinder_fixed import I64
from tasks.generators.pathfinder_search import (
    MOST_TRIES,
    PROBES,
    Drawing,
    NoRoomError,
    blank,
    framed_border,
)
from tasks.generators.pathfinder_settings import Settings
from tasks.generators.pathfinder_tables import DEAD_END, FREE, OVERLAP, SEEDS, Tables

Bools = npt.NDArray[np.bool_]

_CELLS = 1 << 22
"""Mask pixels held at once."""
_FEWEST = 128
"""Lanes at least."""
_PART = 256
"""Lanes whose probes are looked up at once."""
_SEED, _EXTEND, _OTHER_SEED, _OTHER_EXTEND, _DONE = range(5)


def search(tables: Tables, settings: Settings, keys: U64, counters: I64) -> Drawing:
    """Return one drawing for each row, drawing on from (keys, counters), both (R,)."""
    rows = len(keys)
    # A few rows more cost little, and a search without hope is given up so much sooner.
    keys = np.concatenate([keys, np.arange(max(0, _FEWEST - rows), dtype=np.uint64)])
    counters = np.concatenate([counters, np.zeros(len(keys) - rows, np.int64)])
    lanes = _Lanes(tables, settings, keys, counters)
    while ((lanes.phase != _DONE) & (lanes.row < rows)).any():
        lanes.seed()
        lanes.extend()
        lanes.seed_distractor()
        lanes.extend_distractor()
    drawing = lanes.drawing
    return Drawing(
        drawing.targets[:rows],
        drawing.distractors[:rows],
        drawing.origin[:rows],
        drawing.counters[:rows],
    )


class _Lanes:
    """L lanes. A lane's mask has a frame around the image, so that no stamp ever leaves it."""

    def __init__(self, tables: Tables, settings: Settings, keys: U64, counters: I64) -> None:
        self.tables, self.settings, self.keys = tables, settings, keys
        rows, side = len(keys), tables.side
        self.drawing = blank(settings, counters)
        self.frame = tables.half + 1
        self.pitch = side + 2 * self.frame
        lanes = min(rows, max(16, _CELLS // self.pitch**2))
        self.row = np.arange(lanes)
        self.waiting = lanes
        self.phase = np.full(lanes, _SEED)
        self.tries = self.overdue = 0
        self.mask_LP = np.zeros((lanes, self.pitch**2), np.uint8)
        self.saved_LP = np.zeros_like(self.mask_LP)
        self.border = framed_border(side, settings.padding, self.frame)
        self.edge = framed_border(side, 1, self.frame) > 0
        self.pivot = np.zeros((lanes, 2, 2), np.int64)
        self.last = np.zeros((lanes, 2, 3), np.int64)
        self.placed = np.zeros(lanes, np.int64)
        self.snake = np.zeros(lanes, np.int64)
        self.number = np.zeros(lanes, np.int64)
        self.failures = np.zeros(lanes, np.int64)
        window = np.arange(2 * tables.half + 1) - tables.half
        self.window = (window[:, None] * self.pitch + window).ravel()
        self.near = tables.near @ [self.pitch, 1]
        self.core = tables.core @ [self.pitch, 1]
        self.masks = tables.masks.reshape(len(tables.masks), -1)

    def seed(self) -> None:
        """Begin a pair of paths: the first seed amid the image, the second at a fixed distance."""
        lane = np.flatnonzero(self.phase == _SEED)
        if not len(lane):
            return
        self.tries += len(lane)
        self.overdue += self.tries > MOST_TRIES
        if self.overdue > 2 * self.settings.contour_length:
            # All those pairs have ended by now, and none was finished.
            raise NoRoomError
        t = self.tables
        group, tries = np.arange(len(lane)), self.settings.paddle_retries + 1
        # First seed: amid the image.
        turned = t.first[self._draw(lane, [0], len(t.first))[:, 0]]
        rows, columns = t.first_room[turned].T
        place = self._draw(lane, [1], (rows * columns)[:, None])[:, 0]
        tail = t.first_low[turned] + np.stack([place // columns, place % columns], axis=1)
        fits = self._seed_fits(tail, turned)
        first = np.column_stack([tail, turned])
        # Second seed: anywhere on the ring around the first.
        offset = 2 + 2 * np.arange(tries)
        turned = self._draw(lane, offset, SEEDS)
        tail = tail[:, None] + t.ring[self._draw(lane, offset + 1, SEEDS)]
        fits_too, choice = _first(self._seed_fits(tail, turned))
        second = np.column_stack([tail[group, choice], turned[group, choice]])
        self._count(lane, 2 + 2 * tries)

        fits &= fits_too
        lane, seeds = lane[fits], np.stack([first, second], axis=1)[fits]
        self.mask_LP[lane] = self.border
        self._begin(lane, seeds)
        self.drawing.targets[self.row[lane], :, 0] = seeds
        self.phase[lane] = _EXTEND

    def extend(self) -> None:
        """Add one paddle to one of the two paths, in turn; start again where that fails."""
        lane = np.flatnonzero(self.phase == _EXTEND)
        if not len(lane):
            return
        snake = self.snake[lane]
        grown = self._extend(lane, snake)
        self.phase[lane[~grown]] = _SEED
        lane, snake = lane[grown], snake[grown]
        self.drawing.targets[self.row[lane], snake, self.placed[lane]] = self.last[lane, snake]
        self.snake[lane] = 1 - snake
        self.placed[lane] += snake
        done = lane[self.placed[lane] == self.settings.contour_length]
        if len(done):
            self.tries = self.overdue = 0
        # The original marks only the second path's last paddle as taken.
        self._paint(done, self.last[done, 1])
        self.saved_LP[done] = self.mask_LP[done]
        self.number[done] = self.failures[done] = 0
        self.phase[done] = _OTHER_SEED
        self._finish(done[self.number[done] == self.settings.distractors])

    def seed_distractor(self) -> None:
        """Place a distractor's first paddle where its probe meets nothing."""
        lane = np.flatnonzero(self.phase == _OTHER_SEED)
        if not len(lane):
            return
        draws = (self.settings.paddle_retries + 1) * (PROBES + 2)
        closed = ~self.tables.open[self._draw(lane, [0], SEEDS)[:, 0]]
        self._count(lane[closed], draws)
        self._fail_distractor(lane[closed])
        lane = lane[~closed]
        taken = self.mask_LP[lane] > FREE
        area = self.tables.side**2
        seeking = (area - taken.sum(axis=1)) * 100 >= area
        taken |= self.edge
        fits = np.zeros(len(lane), bool)
        seeds = np.zeros((len(lane), 1, 3), np.int64)
        for trial in range(self.settings.paddle_retries + 1):
            active = np.flatnonzero(seeking & ~fits)
            for part in np.array_split(active, len(active) // _PART + 1):
                found, seed = self._free_seed(lane[part], taken[part], trial * (PROBES + 2))
                seeds[part, 0], seeking[part] = seed, found
                fits[part] = found & self._seed_fits(seed[:, :2], seed[:, 2])
        self._count(lane, draws)
        self._begin(lane[fits], seeds[fits])
        self._place_distractor(lane[fits], seeds[fits, 0])
        self._fail_distractor(lane[~fits])

    def extend_distractor(self) -> None:
        """Add one paddle to a distractor; try it anew where that fails."""
        lane = np.flatnonzero(self.phase == _OTHER_EXTEND)
        if not len(lane):
            return
        grown = self._extend(lane, np.zeros(len(lane), np.int64))
        self._place_distractor(lane[grown], self.last[lane[grown], 0])
        self._fail_distractor(lane[~grown])

    # Steps --------------------------------------------------------------------------------------

    def _begin(self, lane: I64, seeds: I64) -> None:
        """Set the state after seeds (G, snakes, 3) are placed; nothing is painted yet."""
        snakes = seeds.shape[1]
        self.last[lane, :snakes] = seeds
        self.pivot[lane, :snakes] = seeds[..., :2] + self.tables.pivots[seeds[..., 2]]
        self.placed[lane] = snakes - 1
        self.snake[lane] = 0

    def _extend(self, lane: I64, snake: I64) -> Bools:
        """Try to add a paddle to a path of each lane; return where that succeeded."""
        t = self.tables
        last = self.last[lane, snake]
        pivot = self.pivot[lane, snake] + t.advances[last[:, 2]]
        reached = self._weights(lane, pivot, last[:, 2]).cumsum(axis=1)
        total = reached[:, -1]
        tries = self.settings.paddle_retries + 1
        draws = self._draw(lane, np.arange(tries), np.maximum(total, 1)[:, None])
        self._count(lane, tries)
        grown = np.zeros(len(lane), bool)
        paddle = np.zeros((len(lane), 3), np.int64)
        for trial in range(tries):
            active = np.flatnonzero((total >= DEAD_END) & ~grown)
            chosen = (reached[active] <= draws[active, trial, None]).sum(axis=1)
            paddle[active, :2] = pivot[active] + t.candidates[chosen]
            paddle[active, 2] = SEEDS + chosen
            grown[active] = ~self._overlaps(lane[active], paddle[active])
        lane, snake = lane[grown], snake[grown]
        self._paint(lane, last[grown])
        self.pivot[lane, snake] = pivot[grown]
        self.last[lane, snake] = paddle[grown]
        return grown

    def _weights(self, lane: I64, pivot: I64, turned: I64) -> I64:
        """Weights of all candidates, (G, C): by the turn, dimmed by masks near the candidate."""
        weights = self.tables.weights[turned]
        place = pivot[:, None] + self.tables.candidates
        which, candidate = np.nonzero((weights > 0) & self._inside(place))
        cells = self._cell(lane[which], place[which, candidate])
        near = self.mask_LP.ravel()[cells[:, None] + self.near].max(axis=1, initial=0)
        dimmed = np.zeros_like(weights)
        dimmed[which, candidate] = weights[which, candidate] * (255 - near.astype(np.int64))
        return dimmed

    def _overlaps(self, lane: I64, paddle: I64) -> Bools:
        there = self.mask_LP.ravel()[self._cell(lane, paddle[:, :2])[:, None] + self.window]
        both = self.masks[paddle[:, 2]].astype(np.int16) + there
        return np.asarray(both.max(axis=1, initial=0) >= OVERLAP)

    def _paint(self, lane: I64, paddle: I64) -> None:
        """Add paddles' masks to what is taken, one paddle for each lane."""
        cells = self._cell(lane, paddle[:, :2])[:, None] + self.window
        flat = self.mask_LP.reshape(-1)
        flat[cells] = np.maximum(flat[cells], self.masks[paddle[:, 2]])

    def _free_seed(self, lane: I64, taken_GP: Bools, offset: int) -> tuple[Bools, I64]:
        """Draw a direction and one of the tails whose probe is free: (found, (G, 3) seeds)."""
        group, side = np.arange(len(lane)), self.tables.side
        turned = self._draw(lane, [offset], SEEDS)[:, 0]
        probes = self._draw(lane, offset + 2 + np.arange(PROBES), side * side)
        cells = self._cell(group[:, None], np.stack([probes // side, probes % side], axis=-1))
        free = ~taken_GP.ravel()[cells[:, :, None] + self.core[turned][:, None]].any(axis=2)
        found, choice = _first(free & self.tables.open[turned, None])
        probe = probes[group, choice]
        everywhere = self._cell(np.zeros(1, np.int64), np.argwhere(np.ones((side, side))))
        for g in np.flatnonzero(self.tables.open[turned] & ~found):
            free = ~taken_GP[g][everywhere[:, None] + self.core[turned[g]]].any(axis=1)
            places = np.flatnonzero(free)
            if len(places):
                found[g] = True
                probe[g] = places[self._draw(lane[g : g + 1], [offset + 1], len(places))[0, 0]]
        return found, np.stack([probe // side, probe % side, turned], axis=1)

    def _place_distractor(self, lane: I64, paddle: I64) -> None:
        self.drawing.distractors[self.row[lane], self.number[lane], self.placed[lane]] = paddle
        self.placed[lane] += 1
        self.phase[lane] = _OTHER_EXTEND
        whole = self.placed[lane] == self.settings.distractor_length
        lane = lane[whole]
        self._paint(lane, paddle[whole])
        self.saved_LP[lane] = self.mask_LP[lane]
        self._next_distractor(lane)

    def _fail_distractor(self, lane: I64) -> None:
        self.mask_LP[lane] = self.saved_LP[lane]
        self.drawing.distractors[self.row[lane], self.number[lane]] = -1
        self.failures[lane] += 1
        self.phase[lane] = _OTHER_SEED
        self._next_distractor(lane[self.failures[lane] > self.settings.distractor_retries])

    def _next_distractor(self, lane: I64) -> None:
        self.number[lane] += 1
        self.failures[lane] = 0
        self.phase[lane] = _OTHER_SEED
        self._finish(lane[self.number[lane] == self.settings.distractors])

    def _finish(self, lane: I64) -> None:
        """Choose the path that bears the first marker; give the lane a row that waits."""
        self.drawing.origin[self.row[lane]] = self._draw(lane, [0], 2)[:, 0]
        self._count(lane, 1)
        rows = self.waiting + np.arange(len(lane))
        self.waiting += len(lane)
        left = rows < len(self.keys)
        self.row[lane[left]] = rows[left]
        self.phase[lane] = np.where(left, _SEED, _DONE)

    # Draws and places -----------------------------------------------------------------------------

    def _draw(self, lane: I64, offset: npt.ArrayLike, bound: npt.ArrayLike) -> I64:
        """Draws (G, T) below `bound`, at `offset` (T,) from each lane's counter."""
        row = self.row[lane]
        index = self.drawing.counters[row][:, None] + np.asarray(offset)
        return below(self.keys[row][:, None], index, bound)

    def _count(self, lane: I64, draws: int) -> None:
        self.drawing.counters[self.row[lane]] += draws

    def _inside(self, place: I64) -> Bools:
        y, x = place[..., 0], place[..., 1]
        return (y >= 0) & (x >= 0) & (y < self.tables.side) & (x < self.tables.side)

    def _seed_fits(self, tail: I64, turned: I64) -> Bools:
        head, pivot = tail + self.tables.heads[turned], tail + self.tables.pivots[turned]
        return self._inside(tail) & self._inside(head) & self._inside(pivot)

    def _cell(self, lane: I64, place: I64) -> I64:
        """Index of the pixels (..., 2) of lanes (...) into all masks laid flat."""
        within = (place[..., 0] + self.frame) * self.pitch + place[..., 1] + self.frame
        return lane * self.pitch**2 + within


def _first(fits: Bools) -> tuple[Bools, I64]:
    """Whether any of (G, T) fits, and the first that does."""
    return np.asarray(fits.any(axis=1)), fits.argmax(axis=1)
