"""How plots look: one fixed colour, dash and marker per mechanism, the same in every figure.

Colours are seaborn's colour-blind set without its grey, which is the floor's, and its two that are
too pale for lines on white. With more mechanisms than colours, dash and marker tell them apart.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from typing import Any

import msgspec

COLOURS = ("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#56b4e9", "#ca9161")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (5, 1.2, 1, 1.2)), (0, (2.5, 1, 1, 1, 1, 1)))
_MARKERS = "osD^vPX<>"
_KNOWN = (
    "performer",
    "linear",
    "linformer",
    "sliding_window",
    "full",
    "nystromformer",
    "longformer",
    "bigbird",
    "reformer",
    "synthesizer",
    "block_local",
    "sparse_strided",
    "sparse_fixed",
    "sinkhorn",
    "chunked",
    "multi_query",
    "grouped_query",
    "s4d",
    "lstm",
)
"""Mechanisms that shall look different from each other; any other name gets a look from its hash,
in a dash that none of these has."""

INK, MUTED, FAINT = "#1f2328", "#59636e", "#d1d9e0"

_RC: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "lra",
    "text.parse_math": False,
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e9edf1",
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}


class Look(msgspec.Struct, frozen=True):
    """How one mechanism is drawn."""

    colour: str
    dash: Any
    marker: str


def look(mechanism: str, label: str = "") -> Look:
    """Return the look of a mechanism; another configuration of it keeps the colour."""
    if mechanism == "sdpa":
        base = Look(INK, "-", "o")
    elif mechanism == "identity":
        base = Look("#949494", (0, (1, 1.2)), "o")
    elif mechanism in _KNOWN:
        place = _KNOWN.index(mechanism)
        colour, dash = COLOURS[place % len(COLOURS)], _DASHES[place // len(COLOURS)]
        base = Look(colour, dash, _MARKERS[place % len(_MARKERS)])
    else:
        place = _digest(mechanism)
        base = Look(COLOURS[place % len(COLOURS)], _DASHES[3], _MARKERS[place % len(_MARKERS)])
    if label in ("", mechanism):
        return base
    return msgspec.structs.replace(base, dash=_DASHES[_digest(label) % len(_DASHES)])


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def draw(paint: Callable[[Any], None], width: float, height: float) -> str:
    """Return the SVG of what `paint(figure)` draws; the same for the same data, whatever the user
    has set in matplotlib.

    Sizes are inches. Text stays text. No date, no version, no external reference.
    """
    empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    text = _drawn(paint, width, height, format="svg", metadata=empty).decode()
    # Two images alike would have one id, by which nobody asks for them.
    text = re.sub(r' id="image[0-9a-f]+"', "", text)
    return text.replace("\r\n", "\n")


def draw_png(paint: Callable[[Any], None], width: float, height: float) -> bytes:
    """Return the same as a PNG, 200 dots an inch."""
    return _drawn(paint, width, height, format="png", metadata={"Software": None}, dpi=200)


def _drawn(paint: Callable[[Any], None], width: float, height: float, **how: Any) -> bytes:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(wspace=0.06))
        paint(figure)
        target = io.BytesIO()
        figure.savefig(target, **how)
    return target.getvalue()


def inline(svg: str, prefix: str, title: str) -> str:
    """Return an SVG to stand inside HTML: ids of its own, a title, the width of the page."""
    from markupsafe import escape

    body = svg[svg.index("<svg") :]
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}-", body)
    body = body.replace("*{stroke", f"#{prefix} *{{stroke", 1)
    head, rest = body.split(">", 1)
    head = re.sub(r' (width|height|version)="[^"]*"', "", head)
    return f'{head} id="{prefix}" role="img" aria-label="{escape(title)}">{rest}'
