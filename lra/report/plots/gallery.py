"""Small pictures of patterns side by side: a square for each pair that may interact."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from lra.report.model import Figure
from lra.report.plots.picture import Picture
from lra.report.plots.style import FAINT, INK, MUTED, Looks
from lra.report.words import listing, percent, shortened

_ACROSS = 7
_SIDE, _GAP, _TEXT = 128, 22, 34
_LETTERS = 20


def gallery_figure(pictures: Sequence[Picture], looks: Looks) -> Figure | None:
    """Return the supports of all pictures as one figure; None without any."""
    if not pictures:
        return None
    names = shortened([one.label for one in pictures], _LETTERS)
    parts = []
    for place, (one, name) in enumerate(zip(pictures, names, strict=True)):
        x = (place % _ACROSS) * (_SIDE + _GAP)
        y = (place // _ACROSS) * (_SIDE + _TEXT + 8)
        share = f"{percent(one.pattern.share)} % of pairs"
        parts.append(
            f'<image x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" '
            f'style="image-rendering:pixelated" '
            f'href="data:image/png;base64,{_png(one, looks)}"/>'
            f'<rect x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" fill="none" '
            f'stroke="{FAINT}"/>'
            f'<text x="{x}" y="{y + _SIDE + 14}" font-size="12" fill="{INK}">{escape(name)}</text>'
            f'<text x="{x}" y="{y + _SIDE + 28}" font-size="10" fill="{MUTED}">{share}</text>'
        )
    down = -(-len(pictures) // _ACROSS)
    width, height = _ACROSS * (_SIDE + _GAP) - _GAP, down * (_SIDE + _TEXT + 8)
    return Figure(
        id="gallery",
        title="Pairs that may interact",
        alt=f"Patterns of {listing([one.label for one in pictures])}.",
        caption="Shares are of all pairs of positions.",
        svg=f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif">{"".join(parts)}</svg>',
    )


def _png(one: Picture, looks: Looks) -> str:
    """The support of the first head as a PNG of a pixel a pair."""
    from matplotlib.colors import ListedColormap
    from matplotlib.image import imsave

    colours = ListedColormap(["#ffffff", looks.of(one.cell.mechanism.name).colour])
    # Of no version of matplotlib, so that the same pattern gives the same bytes.
    nothing: Any = {"Software": None}
    target = io.BytesIO()
    support_NN = one.pattern.support_SNN()[0]
    imsave(
        target, support_NN, format="png", cmap=colours, vmin=0, vmax=1,
        metadata=nothing,
    )  # fmt: skip
    return base64.b64encode(target.getvalue()).decode()
