"""Patterns as small pictures: a square for each pair that may interact, and the weights by head.

Each is an image with one pixel for each pair: thousands of squares would be slow to show.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from lra.core.pattern import Pattern
from lra.report.model import Figure
from lra.report.plots.picture import Picture
from lra.report.plots.style import FAINT, INK, MUTED, Looks
from lra.report.words import listing, percent, shortened

_ACROSS = 7
_SIDE, _GAP, _TEXT = 128, 22, 34
_LARGE = 268
"""Side of the support on a card: two heads stand beside it, one above the other."""
_LETTERS = 20
_HEADS = 8
"""Number of heads that a card shows."""


def gallery_figure(pictures: Sequence[Picture], looks: Looks) -> Figure | None:
    """Return the supports of all pictures as one figure; None without any."""
    if not pictures:
        return None
    names = shortened([one.label for one in pictures], _LETTERS)
    parts = []
    for place, (one, name) in enumerate(zip(pictures, names, strict=True)):
        x = (place % _ACROSS) * (_SIDE + _GAP)
        y = (place // _ACROSS) * (_SIDE + _TEXT + 8)
        parts += [
            _image(_support(one, looks), x, y, _SIDE),
            _label(name, x, y + _SIDE + 14, 12, INK),
            _label(f"{percent(one.pattern.share)} %", x, y + _SIDE + 28, 10, MUTED),
        ]
    down = -(-len(pictures) // _ACROSS)
    return Figure(
        id="gallery",
        title="Pairs that may interact",
        alt=f"Patterns of {listing([one.label for one in pictures])}.",
        caption="Shares are of all pairs of positions.",
        svg=_drawing(parts, _ACROSS * (_SIDE + _GAP) - _GAP, down * (_SIDE + _TEXT + 8)),
    )


def card_pattern(one: Picture, looks: Looks) -> Figure:
    """Return the support of a mechanism, and its weights head by head or its dependence."""
    values_HNN = one.pattern.values_HNN()[:_HEADS]
    parts = [_image(_support(one, looks), 0, 0, _LARGE)]
    for head, values_NN in enumerate(values_HNN):
        x, y = _LARGE + _GAP + (head // 2) * (_SIDE + 12), (head % 2) * (_SIDE + 12)
        parts.append(_image(_values(values_NN, one.pattern), x, y, _SIDE))
    across = _LARGE + _GAP + -(-len(values_HNN) // 2) * (_SIDE + 12)
    return Figure(
        id="pattern",
        title=one.title,
        alt=f"Squares for pairs of positions of {one.title}: {one.pairs}. Beside them "
        f"{one.values}.",
        caption=f"Queries downwards, keys to the right. {one.pairs}; beside it {one.values}. "
        "An untrained layer.",
        svg=_drawing(parts, max(across, 900), _LARGE),
    )


def _drawing(parts: Sequence[str], width: int, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif">{"".join(parts)}</svg>'
    )


def _image(png: str, x: int, y: int, side: int) -> str:
    place = f'x="{x}" y="{y}" width="{side}" height="{side}"'
    return (
        f'<image {place} style="image-rendering:pixelated" href="data:image/png;base64,{png}"/>'
        f'<rect {place} fill="none" stroke="{FAINT}"/>'
    )


def _label(text: str, x: int, y: int, size: int, colour: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" style="fill: {colour}">{escape(text)}</text>'


def _support(one: Picture, looks: Looks) -> str:
    """Support of the first head."""
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(["#ffffff", looks.of(one.cell.mechanism.name).colour])
    return _png(one.pattern.support_SNN()[0], colours, 0.0, 1.0)


def _values(values_NN: Any, pattern: Pattern) -> str:
    """Values of one head on the scale of all; small ones are drawn larger than they are."""
    import numpy as np
    import seaborn as sns

    top = pattern.top or 1.0
    if pattern.scale == "signed":
        return _png(values_NN / top, sns.color_palette("vlag", as_cmap=True), -1.0, 1.0)
    return _png(np.sqrt(values_NN / top), sns.color_palette("mako_r", as_cmap=True), 0.0, 1.0)


def _png(values_NN: Any, colours: Any, low: float, high: float) -> str:
    from matplotlib.image import imsave

    # No version of matplotlib, so that the same pattern gives the same bytes.
    nothing: Any = {"Software": None}
    target = io.BytesIO()
    imsave(target, values_NN, format="png", cmap=colours, vmin=low, vmax=high, metadata=nothing)
    return base64.b64encode(target.getvalue()).decode()
