"""The figure of the Long Range Arena: accuracy against speed, circle area for memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lra.core.catalogue import CONTROLS, EXACT
from lra.report.leaderboard import Entry, Leaderboard
from lra.report.model import Figure
from lra.report.plots.labels import Box, beside_circles
from lra.report.plots.style import FAINT, INK, MUTED, Looks, draw
from lra.report.words import TIMES, listing, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 5.6, 4.9
_LARGEST = 900.0
"""Area of the largest circle, in square points."""
_LETTER, _LINE = 5.2, 11.0
"""Width of a letter of a name and height of a line, in points."""
_LETTERS = 18
_CLEAR = 2.0
"""Distance between a name and a line, in points."""


def tradeoff_figure(board: Leaderboard, looks: Looks, id: str = "tradeoff") -> Figure | None:
    """Return accuracy against the speed of calls; None with fewer than two mechanisms placed."""
    placed = [
        one
        for one in board.entries
        if one.time and one.score and not math.isnan(one.score.mean) and one.time.value > 0
    ]
    if len(placed) < 2 or board.setting is None:
        return None
    steps = sorted((one for one in placed if one.key in board.front), key=_speed)

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        _paint(axes, placed, steps, looks)
        axes.set_xlabel(f"{speed} at length {board.length:,}, {TIMES} that of {EXACT}")
        axes.set_ylabel("accuracy, %")

    speed = {"train": "training speed", "forward": "forward speed"}[board.mode]
    notes = ["Right is faster, up is better, small is lean."]
    notes += ["Line: the front."] if len(steps) > 1 else []
    notes += ["Light: a row of the reference."] if _has_reference(placed) else []
    elsewhere = any(one.time and one.time.elsewhere for one in placed)
    notes += ["Dashed: timed on another machine."] if elsewhere else []
    return Figure(
        id=id,
        title="Accuracy against speed and memory",
        alt=f"Scatter plot of accuracy against {speed} at length {board.length}; the area "
        f"of a circle is peak memory. Shown: {listing([one.key.label for one in placed])}. On the "
        f"front: {listing([one.key.label for one in steps])}.",
        caption=" ".join(notes),
        svg=draw(paint, _WIDTH, _HEIGHT),
    )


def _has_reference(placed: Sequence[Entry]) -> bool:
    return len({one.key.origin for one in placed}) > 1


def _speed(one: Entry) -> float:
    assert one.time, "only what has a time is placed"
    return 1.0 / one.time.value


def _point(one: Entry) -> tuple[float, float]:
    assert one.score, "only what has an accuracy is placed"
    return _speed(one), 100 * one.score.mean


def _paint(axes: Axes, placed: Sequence[Entry], steps: Sequence[Entry], looks: Looks) -> None:
    points = [_point(one) for one in placed]
    memory = [one.memory.value if one.memory else 0.0 for one in placed]
    areas = [max(16.0, _LARGEST * own / (max(memory) or 1.0)) for own in memory]
    axes.set_xscale("log")
    axes.set_xlim(*_widened([x for x, _ in points], logarithmic=True))
    axes.set_ylim(*_widened([y for _, y in points], logarithmic=False))
    colours = [looks.of(one.key.mechanism, one.key.variant).colour for one in placed]
    faint = [0.35 if one.key.origin == "run" else 0.1 for one in placed]
    corners = _corners([_point(one) for one in steps])
    axes.plot(*zip(*corners, strict=True), color=FAINT, linewidth=5, zorder=1) if corners else None
    axes.axvline(1.0, color=INK, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    axes.scatter(
        [x for x, _ in points],
        [y for _, y in points],
        s=areas,
        facecolor=list(zip(colours, faint, strict=True)),
        edgecolor=colours,
        linewidth=1.4,
        linestyle=[(0, (2, 1.5)) if one.time and one.time.elsewhere else "-" for one in placed],
        zorder=3,
    )
    _names(axes, placed, points, areas, colours, corners)
    _plain_ticks(axes.xaxis)


def _corners(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Corners of the steps through points of the front, slowest first."""
    found = list(points[:1])
    for (_, before), (x, y) in pairwise(points):
        found += [(x, before), (x, y)]
    return found


def _names(
    axes: Axes,
    placed: Sequence[Entry],
    points: Sequence[tuple[float, float]],
    areas: Sequence[float],
    colours: Sequence[str],
    corners: Sequence[tuple[float, float]],
) -> None:
    """Write each name beside its circle, where it covers least."""
    wide, high = (_WIDTH - 0.7) * 72, (_HEIGHT - 0.7) * 72
    fraction = axes.transAxes.inverted()

    def place(point: tuple[float, float]) -> tuple[float, float]:
        u, v = fraction.transform(axes.transData.transform(point))
        return float(u) * wide, float(v) * high

    texts = shortened([one.key.name for one in placed], _LETTERS)
    radii = [(area / math.pi) ** 0.5 for area in areas]
    labels = beside_circles(
        [place(point) for point in points],
        radii,
        [(_LETTER * len(text), _LINE) for text in texts],
        Box(0.0, 0.0, wide, high),
        [_around(a, b) for a, b in pairwise(map(place, corners))],
    )
    for one, text, point, label, radius, colour in zip(
        placed, texts, points, labels, radii, colours, strict=True
    ):
        strong = one.key.mechanism in (EXACT, *CONTROLS) or one.key.origin == "run"
        axes.annotate(
            text,
            point,
            xytext=(label.dx, label.dy),
            textcoords="offset points",
            ha=label.align,
            va="center",
            fontsize=8,
            color=INK if strong else MUTED,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkB": radius},
        )


def _around(start: tuple[float, float], end: tuple[float, float]) -> Box:
    """Box around a straight or upright line, with a little room."""
    (left, right), (bottom, top) = (sorted(pair) for pair in zip(start, end, strict=True))
    return Box(left - _CLEAR, bottom - _CLEAR, right + _CLEAR, top + _CLEAR)


def _plain_ticks(axis: Any) -> None:
    """Write ticks as plain numbers, at 1, 2 and 5 of each power of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _widened(values: Sequence[float], *, logarithmic: bool) -> tuple[float, float]:
    """Return limits with room for circles and names."""
    low, high = min(values), max(values)
    if logarithmic:
        room = (high / low) ** 0.14 if high > low else 1.5
        return low / room, high * room
    room = 0.12 * (high - low) or 0.1 * high or 1.0
    return low - room, high + room
