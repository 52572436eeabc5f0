"""Lines over length on two logarithmic axes, with their names beside the panel.

A legend of sixty names is of no use: each name is level with the end of its line, behind a piece of
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lra.report.load.measurement import Origin
from lra.report.plots.labels import spread
from lra.report.plots.style import Look
from lra.report.words import Unit, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 9.6
"""Width of a figure in inches."""
LINE = 0.19
"""Inches between the baselines of two names."""
LETTERS = 22
"""Length of the longest name that leaves room for two panels."""
_LETTER = 0.084
"""Width of a letter of a name in inches."""
_MANY = 6
"""Number of lengths from which on they are written aslant, without those that crowd."""
_NARROW = 5.0
"""Factor between values up to which ticks are as on a linear axis."""
_ROOM = 1.5
"""Smallest factor between two ticks."""
_SAMPLE = (0.0, 0.18, 0.36)
"""Places of a name's piece of line, in inches."""


class Name(NamedTuple):
    """A name beside a panel."""

    value: float
    """Height of the line's end, or the top of the panel if it has no point."""
    text: str
    line: dict[str, Any]
    """Style of the line."""


def margin_of(names: Sequence[str]) -> float:
    """Return the inches that names need beside a panel, with a few letters to spare."""
    return 1.1 + _LETTER * max(map(len, names), default=0)


def height_of(rows: int) -> float:
    """Return the inches that a panel needs for that many names."""
    return max(3.0, 1.2 + LINE * rows)


def line_style(origin: Origin, look: Look) -> dict[str, Any]:
    """Return the style of a mechanism's line; a reference's is hollow."""
    reference = origin == "reference"
    return {
        "color": look.colour,
        "linestyle": look.dash,
        "marker": look.marker,
        "markerfacecolor": "white" if reference else look.colour,
        "linewidth": 1.2 if reference else 2.0,
        "zorder": 3,
    }


def log_axes(
    axes: Axes, lengths: Sequence[int], values: Sequence[float], tick: Callable[[float], str]
) -> None:
    """Set logarithmic axes with plain ticks: lengths across, values up; the limits are theirs."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

    low, high = min(values), max(values)
    room = (high / low) ** 0.08 if high > low else 1.5
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(lengths[0] / 1.1, lengths[-1] * 1.1)
    axes.set_ylim(low / room, high * room)
    many = len(lengths) >= _MANY
    axes.tick_params(axis="x", rotation=45 if many else 0)
    axes.xaxis.set_major_locator(FixedLocator(ticks_of(lengths) if many else lengths))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{round(x)}"))
    if high / low < _NARROW:
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    else:
        subs = (1.0, 2.0, 5.0) if high / low < 200 else (1.0,)
        axes.yaxis.set_major_locator(LogLocator(subs=subs))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: tick(y)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())


def ticks_of(lengths: Sequence[int]) -> list[int]:
    """Return the ascending lengths with room for a tick, always with the longest."""
    kept: list[int] = []
    for length in reversed(lengths):
        if not kept or kept[-1] >= _ROOM * length:
            kept.append(length)
    return kept[::-1]


def tick_of(value: float, unit: Unit) -> str:
    """Return a tick with its unit: `10 ms`."""
    size, symbol = scale_of([value], unit)
    return f"{value / size:g} {symbol}"


def write_names(
    axes: Axes, limits: tuple[float, float], names: Sequence[Name], height: float, width: float
) -> None:
    """Write names level with their lines' ends, apart from each other, each after its line.

    `axes` is a narrow panel beside that of the lines; `height` and `width` are its inches.
    """
    axes.axis("off")
    axes.set(xlim=(0, width), ylim=(0, 1))
    low, high = map(math.log, limits)
    ordered = sorted(names, key=lambda one: (one.value, one.text))
    wanted = [(math.log(one.value) - low) / (high - low) for one in ordered]
    for one, place in zip(ordered, spread(wanted, LINE / (height - 1.0)), strict=True):
        # A marker in the middle of a piece of line.
        axes.plot(_SAMPLE, [place] * 3, clip_on=False, markevery=[1], **one.line)
        label = axes.annotate(
            one.text,
            (_SAMPLE[-1], place),
            (5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
        label.set_in_layout(False)
