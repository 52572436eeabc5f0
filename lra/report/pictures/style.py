"""How plots look: one fixed colour, dash and marker per mechanism, the same in every figure.

Colours are seaborn's colour-blind set without its grey, which is the floor's, and its two that are
too pale for lines on white, with three dark ones of Paul Tol's. With more mechanisms than colours,
dash and marker tell them apart.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

COLOURS = (
    "#0173b2",
    "#de8f05",
    "#029e73",
    "#d55e00",
    "#cc78bc",
    "#56b4e9",
    "#332288",
    "#882255",
    "#117733",
    "#ca9161",
)
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)))
"""Of known mechanisms."""
_OTHER_DASHES: tuple[Any, ...] = (
    (0, (5, 1.2, 1, 1.2)),
    (0, (2.5, 1, 1, 1, 1, 1)),
    (0, (1.5, 1)),
    (0, (9, 1.2, 2, 1.2)),
)
"""Of any other name, and of other configurations."""
MARKS = {
    "o": "M1 6a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "s": "M2 2h8v8h-8z",
    "D": "M6 .5L11.5 6L6 11.5L.5 6z",
    "^": "M6 1L11 10.5H1z",
    "v": "M6 11L1 1.5H11z",
    "P": "M4 1h4v3h3v4h-3v3h-4v-3h-3v-4h3z",
    "X": "M1 3.5L3.5 1L6 3.5L8.5 1L11 3.5L8.5 6L11 8.5L8.5 11L6 8.5L3.5 11L1 8.5L3.5 6z",
    "<": "M1 6L10.5 1V11z",
    ">": "M11 6L1.5 1V11z",
}
"""Outlines of the markers for swatches, in a square of 12."""
MARKERS = "".join(MARKS)
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


Looks = Mapping[tuple[str, str], Look]
"""By mechanism and label."""


def look(mechanism: str, label: str = "") -> Look:
    """Return the look of a mechanism; another configuration of it keeps the colour.

    It follows from the names alone, so two strangers can look alike: see `looks`.
    """
    if mechanism == "sdpa":
        base = Look(INK, "-", "o")
    elif mechanism == "identity":
        base = Look("#949494", (0, (1, 1.2)), "o")
    elif mechanism in _KNOWN:
        place = _KNOWN.index(mechanism)
        colour, dash = COLOURS[place % len(COLOURS)], _DASHES[place // len(COLOURS)]
        base = Look(colour, dash, MARKERS[place % len(MARKERS)])
    else:
        place = _digest(mechanism)
        base = _steps(COLOURS[place % len(COLOURS)], place)[0]
    if label in ("", mechanism):
        return base
    return _steps(base.colour, _digest(label))[0]


def looks(drawn: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Look]:
    """Return the look of each mechanism and label of a report, no two of them alike.

    Each gets what `look` says, unless that dash or marker is taken in its colour; then it goes on
    to the next ones.
    """
    found: dict[tuple[str, str], Look] = {}
    for key in sorted(set(drawn), key=lambda key: (not _has_own_look(*key), key)):
        first = look(*key)
        rest = [] if _has_own_look(*key) else _steps(first.colour, _digest(key[1] or key[0]))
        taken = [one for one in found.values() if one.colour == first.colour]
        found[key] = min([first, *rest], key=lambda one: _clashes(one, taken))
    return found


def _has_own_look(mechanism: str, label: str) -> bool:
    return label in ("", mechanism) and mechanism in (*_KNOWN, "sdpa", "identity")


def _steps(colour: str, start: int) -> list[Look]:
    """All dashes and markers of one colour; their numbers have no common divisor."""
    dashes, markers = len(_OTHER_DASHES), len(MARKERS)
    return [
        Look(colour, _OTHER_DASHES[place % dashes], MARKERS[place % markers])
        for place in range(start, start + dashes * markers)
    ]


def _clashes(one: Look, taken: Iterable[Look]) -> tuple[int, int]:
    """How often a look is taken, and how often its dash or its marker alone."""
    alike = [(one.dash == other.dash, one.marker == other.marker) for other in taken]
    return sum(dash and marker for dash, marker in alike), sum(map(sum, alike))


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def draw(paint: Callable[[Any], None], width: float, height: float) -> str:
    """Return the SVG of what `paint(figure)` draws; the same for the same data, whatever the user
    has set in matplotlib.

    Sizes are inches. Text stays text. No date, no version, no external reference.
    """
    empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    text = _drawn(paint, width, height, format="svg", metadata=empty).decode()
    # Identical images would share an id, and nothing refers to it.
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
        _settle(figure)
        target = io.BytesIO()
        figure.savefig(target, **how)
    return target.getvalue()


def _settle(figure: Any) -> None:
    """Carry out the layout here: `savefig` would draw everything once more to find it.

    The solver's last digits differ from process to process, and ids are hashes of them.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    engine = figure.get_layout_engine()
    if engine is None:
        return
    FigureCanvasSVG(figure)
    engine.execute(figure)
    figure.set_layout_engine(None)
    for axes in figure.axes:
        axes.set_position([round(edge, 6) for edge in axes.get_position(original=True).bounds])


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
