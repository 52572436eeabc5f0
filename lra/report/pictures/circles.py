"""Circles of mechanisms on a panel: area for memory, and each name where it covers nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lra.report.pictures.labels import Box, beside_circles
from lra.report.pictures.style import INK, MUTED, Looks
from lra.report.tradeoff.points import Circle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTER, _LINE = 5.6, 12.0
"""Points that a letter of a name is wide, and a line high."""
_CLEAR = 2.0
"""Points that a name keeps off a line."""


def paint_circles(
    axes: Axes,
    circles: Sequence[Circle],
    points: Sequence[tuple[float, float]],
    areas: Sequence[float],
    looks: Looks,
) -> None:
    """Draw each circle at its point, `areas` in square points; a reference is faint, and what was
    timed on another machine class or build is dashed."""
    colours = [looks[circle.row.mechanism, circle.row.variant].colour for circle in circles]
    faint = [0.3 if circle.row.origin == "run" else 0.08 for circle in circles]
    axes.scatter(
        [x for x, _ in points],
        [y for _, y in points],
        s=areas,
        facecolor=list(zip(colours, faint, strict=True)),
        edgecolor=colours,
        linewidth=1.6,
        linestyle=[(0, (2, 1.5)) if circle.elsewhere else "-" for circle in circles],
        zorder=3,
    )


def faint_note(circles: Iterable[Circle]) -> str:
    """Return what a caption adds where one is faint; empty where none is."""
    beside = any(circle.row.origin == "reference" for circle in circles)
    return " Faint: accuracy of a reference row." if beside else ""


def name_circles(
    axes: Axes,
    circles: Sequence[Circle],
    points: Sequence[tuple[float, float]],
    areas: Sequence[float],
    texts: Sequence[str],
    size: tuple[float, float],
    looks: Looks,
    steps: Sequence[tuple[float, float]] = (),
) -> None:
    """Write each text beside its circle where it covers least; an empty one stays away.

    `size` has width and height of the panel in points; its limits and scales are set. `steps` are
    the corners of a line of steps, which names stay off too.
    """
    wide, high = size
    fraction = axes.transAxes.inverted()

    def place(point: tuple[float, float]) -> tuple[float, float]:
        u, v = fraction.transform(axes.transData.transform(point))
        return float(u) * wide, float(v) * high

    centres = [place(point) for point in points]
    corners = [place(point) for point in steps]
    radii = [(area / math.pi) ** 0.5 for area in areas]
    sizes = [(_LETTER * len(text), _LINE if text else 0.0) for text in texts]
    lines = [_around(a, b) for a, b in pairwise(corners)]
    placed = beside_circles(centres, radii, sizes, Box(0.0, 0.0, wide, high), lines)
    for point, text, label, circle, radius in zip(
        points, texts, placed, circles, radii, strict=True
    ):
        if not text:
            continue
        axes.annotate(
            text,
            point,
            xytext=(label.dx, label.dy),
            textcoords="offset points",
            ha=label.align,
            va="center",
            fontsize=8.5,
            color=INK if circle.row.origin == "run" else MUTED,
            arrowprops={
                "arrowstyle": "-",
                "color": looks[circle.row.mechanism, circle.row.variant].colour,
                "linewidth": 0.8,
                "shrinkB": radius,
            },
        )


def _around(start: tuple[float, float], end: tuple[float, float]) -> Box:
    """A straight or upright line with a little room about it."""
    (left, right), (bottom, top) = (sorted(pair) for pair in zip(start, end, strict=True))
    return Box(left - _CLEAR, bottom - _CLEAR, right + _CLEAR, top + _CLEAR)


def plain_ticks(axis: Any, *, logarithmic: bool) -> None:
    """Write ticks as plain numbers, at 1, 2 and 5 of each power of ten where logarithmic."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if logarithmic:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def widened(low: float, high: float, *, logarithmic: bool) -> tuple[float, float]:
    """Return limits with room for circles and names."""
    if logarithmic:
        room = (high / low) ** 0.22
        return low / room, high * room
    room = 0.22 * (high - low) or 0.1 * high or 1.0
    return low - room, high + room
