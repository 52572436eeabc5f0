"""Pictures of a mechanism's attention pattern: its support, and its weights head by head.

As in the BigBird and Longformer papers: a square per pair, queries downwards, keys to the right.

N positions   S matrices of support   H matrices of values
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from lra.core.pattern import Pattern
from lra.report.plots.picture import Picture
from lra.report.plots.style import FAINT, MUTED, Looks, draw, draw_png
from lra.report.words import percent, shortened

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes

_BLOCK = 3.65
"""Side of the left and of the right half, in inches."""
_LEFT, _BETWEEN, _RIGHT = 0.62, 0.72, 0.96
_BOTTOM, _TOP, _HEADING = 0.52, 0.5, 0.55
"""Margins in inches, and the heading of a picture that stands alone."""
_GAP = 0.3
"""Gap between the heads of a half, in inches."""
_LETTERS = 100
"""Letters in a line of settings."""
_PARTED = 2.9
"""Side of a square, in points, from which on white lines separate them."""


def pattern_svg(shown: Picture, looks: Looks, *, headed: bool = False) -> str:
    """Return the picture as SVG, with a heading if it is to stand alone."""
    return draw(*_drawing(shown, looks, headed=headed))


def pattern_png(shown: Picture, looks: Looks) -> bytes:
    """Return the picture as PNG, with its heading."""
    return draw_png(*_drawing(shown, looks, headed=True))


def _drawing(
    shown: Picture, looks: Looks, *, headed: bool
) -> tuple[Callable[[Any], None], float, float]:
    """Return the function that paints the picture, and its width and height."""
    pattern = shown.pattern
    support_SNN, values_HNN, n = pattern.support_SNN(), pattern.values_HNN(), pattern.length
    width = _LEFT + _BLOCK + _BETWEEN + _BLOCK + _RIGHT
    height = _BOTTOM + _BLOCK + _TOP + _HEADING * headed

    def paint(figure: Any) -> None:
        page = _Page(figure, width, height)
        if headed:
            page.write(0.1, height - 0.25, shown.title, fontsize=11, fontweight="bold")
            (settings,) = shortened([shown.settings], _LETTERS)
            page.write(0.1, height - 0.46, settings, fontsize=8.5, color=MUTED)
        weighted = pattern.kind == "weights"
        names = ("query", "key") if weighted else ("output", "input")
        done = "do" if pattern.measured else "may"
        title = f"pairs that {done} interact: {percent(pattern.share)} %"
        colour = looks.of(shown.cell.mechanism.name).colour
        left, right = _Half(len(support_SNN)), _Half(len(values_HNN))
        square = 72 * left.side / n
        for axes, support_NN in zip(
            page.panels(_LEFT, left, title, names), support_SNN, strict=True
        ):
            _support(axes, support_NN, colour, square)
        start = _LEFT + _BLOCK + _BETWEEN
        title = "weights" if weighted else "dependence, by gradients"
        for number, axes in enumerate(page.panels(start, right, title, names)):
            support_NN = support_SNN[min(number, len(support_SNN) - 1)]
            drawn = _values(axes, values_HNN[number], support_NN, pattern)
        place = (start + right.width + 0.14, _BOTTOM, 0.12, _BLOCK)
        bar = figure.colorbar(drawn, cax=page.axes(*place))
        _name_bar(bar, pattern)

    return paint, width, height


class _Half(msgspec.Struct, frozen=True):
    """A square grid of panels, filled by rows; two stand one above the other."""

    number: int

    @property
    def down(self) -> int:
        return math.isqrt(self.number - 1) + 1

    @property
    def across(self) -> int:
        return -(-self.number // self.down)

    @property
    def side(self) -> float:
        """Side of a panel, in inches."""
        return (_BLOCK - _GAP * (self.down - 1)) / self.down

    @property
    def width(self) -> float:
        return self.across * (self.side + _GAP) - _GAP


class _Page:
    """A figure in inches from its lower left corner: squares stay square and close together."""

    def __init__(self, figure: Any, width: float, height: float) -> None:
        self.figure, self.width, self.height = figure, width, height
        figure.set_layout_engine(None)

    def axes(self, left: float, bottom: float, width: float, height: float) -> Axes:
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        found: Axes = self.figure.add_axes(place)
        return found

    def write(self, x: float, y: float, text: str, **how: Any) -> None:
        self.figure.text(x / self.width, y / self.height, text, **how)

    def panels(self, left: float, half: _Half, title: str, names: tuple[str, str]) -> list[Axes]:
        """Return the panels of one half under its title, with rows and columns named once."""
        panels = []
        for place in range(half.number):
            row, column = divmod(place, half.across)
            bottom = _BOTTOM + _BLOCK - half.side - row * (half.side + _GAP)
            axes = self.axes(left + column * (half.side + _GAP), bottom, half.side, half.side)
            if half.number > 1:
                head = f"head {place + 1}"
                axes.set_title(head, fontsize=8.5, fontweight="normal", pad=3, color=MUTED)
            lowest = place + half.across >= half.number
            axes.tick_params(labelleft=column == 0, labelbottom=lowest)
            panels.append(axes)
        top, middle = _BOTTOM + _BLOCK, {"color": MUTED, "ha": "center"}
        above = 0.1 if half.number == 1 else 0.28
        self.write(left, top + above, title, fontsize=10, fontweight="bold")
        self.write(left + half.width / 2, 0.1, f"{names[1]} position", **middle)
        self.write(
            left - 0.42, (_BOTTOM + top) / 2, f"{names[0]} position", va="center", rotation=90,
            **middle,
        )  # fmt: skip
        return panels


def _support(axes: Axes, support_NN: npt.NDArray[Any], colour: str, square: float) -> None:
    """Draw a square in the mechanism's colour for each pair."""
    from matplotlib.colors import ListedColormap

    _squares(axes, support_NN, cmap=ListedColormap(["#ffffff", colour]), vmin=0, vmax=1)
    if square >= _PARTED:
        _part(axes, len(support_NN), min(0.6, 0.1 * square))


def _values(
    axes: Axes, values_NN: npt.NDArray[Any], support_NN: npt.NDArray[Any], pattern: Pattern
) -> Any:
    """Draw the values, on one scale for all heads; pairs outside of the support stay white."""
    import numpy as np
    import seaborn as sns
    from matplotlib.colors import LogNorm, Normalize, PowerNorm

    top = pattern.top or 1.0
    norm: Normalize = PowerNorm(0.5, 0.0, top)
    if pattern.scale == "signed":
        norm = Normalize(-top, top)
    elif pattern.scale == "logarithmic":
        support_NN = support_NN & (values_NN > 0)
        norm = LogNorm(min(values_NN[support_NN].min(initial=top), 0.1 * top), top)
    colours = sns.color_palette("vlag" if pattern.scale == "signed" else "mako_r", as_cmap=True)
    return _squares(axes, np.ma.masked_where(~support_NN, values_NN), cmap=colours, norm=norm)


def _squares(axes: Axes, values_NN: Any, **how: Any) -> Any:
    n = len(values_NN)
    image = axes.imshow(values_NN, interpolation="none", **how)
    # Blocks and windows are mostly powers of two.
    places = range(0, n, 1 << ((n - 1) // 5).bit_length())
    axes.set(xticks=places, yticks=places)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, color=FAINT)
    return image


def _part(axes: Axes, n: int, width: float) -> None:
    """Draw white lines between the squares, as one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    ends = [(place, end) for place in range(n - 1) for end in (-0.5, n - 0.5)]
    points = [(end, place + 0.5) for place, end in ends]
    points += [(place + 0.5, end) for place, end in ends]
    codes = [Path.MOVETO, Path.LINETO] * (len(points) // 2)
    if points:
        axes.add_patch(PathPatch(Path(points, codes), fill=False, color="#ffffff", linewidth=width))


def _name_bar(bar: Any, pattern: Pattern) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    bar.outline.set_visible(False)
    if pattern.scale == "logarithmic":
        few = bar.norm.vmax < 200 * bar.norm.vmin
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    # Without exponents, which matplotlib sets as formulas.
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    names = {
        "even": "weight (square root scale)",
        "signed": "weight",
        "logarithmic": "|∂y / ∂x| (logarithmic scale)",
    }
    bar.set_label(names[pattern.scale], color=MUTED)
