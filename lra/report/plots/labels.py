"""Places for the names in a plot, so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

Side = Literal["left", "center", "right"]


class Box(NamedTuple):
    """A rectangle in points."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """Return the area that two boxes share."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, width) * max(0.0, height)


class Placed(NamedTuple):
    """Offset of a label from its circle's centre in points, and its alignment."""

    dx: float
    dy: float
    align: Side


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return sorted places in 0 to 1, moved as little as needed to lie at least `gap` apart.

    Where there are too many for that they are spread evenly, closer than `gap`.
    """
    gap = min(gap, 1.0 / max(1, len(places) - 1))
    blocks: list[list[float]] = []
    for place in places:
        blocks.append([place])
        while len(blocks) > 1 and _start(blocks[-1], gap) < _end(blocks[-2], gap) + gap:
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return [_start(block, gap) + gap * n for block in blocks for n in range(len(block))]


def _start(block: Sequence[float], gap: float) -> float:
    """Start of a run of touching labels: centred on their wanted places, inside 0 to 1."""
    length = gap * (len(block) - 1)
    return max(0.0, min(1.0 - length, sum(block) / len(block) - length / 2))


def _end(block: Sequence[float], gap: float) -> float:
    return _start(block, gap) + gap * (len(block) - 1)


def beside_circles(
    centres: Sequence[tuple[float, float]],
    radii: Sequence[float],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    drawn: Sequence[Box] = (),
) -> list[Placed]:
    """Return a place for the label of each circle: the side where it covers least.

    All in points; `sizes` are widths and heights of the labels, where one of no width takes no
    place; `frame` is the panel, and `drawn` has the other boxes in it.
    """
    taken = [Box(x - r, y - r, x + r, y + r) for (x, y), r in zip(centres, radii, strict=True)]
    taken.extend(drawn)
    found = []
    for (x, y), radius, (width, height) in zip(centres, radii, sizes, strict=True):
        if width == 0:
            found.append(Placed(0.0, 0.0, "center"))
            continue
        options = []
        for reach in _REACHES:
            for placed in _sides(radius + reach, height):
                shift = {"left": 0.0, "center": width / 2, "right": width}[placed.align]
                left, bottom = x + placed.dx - shift, y + placed.dy - height / 2
                box = Box(left, bottom, left + width, bottom + height)
                outside = width * height - box.overlap(frame)
                covered = sum(map(box.overlap, taken)) + 4 * outside
                options.append((covered + reach, placed, box))
        _, placed, box = min(options, key=lambda option: option[0])
        taken.append(box)
        found.append(placed)
    return found


_REACHES = (0.0, 14.0, 28.0, 42.0, 56.0)
"""Distances of a label from its circle, in points; each point away counts as a square point
covered."""


def _sides(radius: float, height: float) -> list[Placed]:
    """Sides of a circle: right, left, below, above, and then the corners."""
    corner = 0.75 * radius + 4
    down, up = -0.75 * radius - height, 0.75 * radius + height
    return [
        Placed(radius + 5, 0, "left"),
        Placed(-radius - 5, 0, "right"),
        Placed(0, -radius - 3 - height / 2, "center"),
        Placed(0, radius + 3 + height / 2, "center"),
        Placed(corner, down, "left"),
        Placed(-corner, down, "right"),
        Placed(corner, up, "left"),
        Placed(-corner, up, "right"),
    ]
