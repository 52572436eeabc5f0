"""Style of plots: one fixed colour, dash and marker per mechanism, the same in every figure.

Colours are seaborn's colour-blind set without its grey, which is the floor's, and its two that are
too pale for lines on white, with three dark ones of Paul Tol's. With more mechanisms than colours,
dash and marker tell them apart.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from lra.core.catalogue import EXACT, LOCAL, NO_MIXING
from lra.core.escape import escape_controls
from lra.report.plots.compact import compact

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
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (5, 1.2, 1, 1.2)),
    (0, (2.5, 1, 1, 1, 1, 1)),
    (0, (1.5, 1)),
)
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
    """Colour, dash and marker of one mechanism."""

    colour: str
    dash: Any
    marker: str


class Looks:
    """Looks of the mechanisms and variants of a report, no two of them alike.

    A look follows from the name, so that a mechanism looks the same in most reports; where that
    look is taken, the next dash or marker of its colour is used. The first variant of a mechanism
    has the mechanism's look; the others share its colour, and its marker while there are dashes.
    """

    def __init__(self, variants: Iterable[tuple[str, str]] = ()) -> None:
        """Give each mechanism (name, "") and variant (name, id) its look."""
        wanted = set(variants)
        names = {(mechanism, "") for mechanism, _ in wanted}
        firsts = {
            (mechanism, min(v for m, v in wanted if m == mechanism)) for mechanism, _ in names
        }
        self._found: dict[tuple[str, str], Look] = {}
        self._taken: Counter[object] = Counter()
        for key in (*sorted(names), *sorted(wanted - names - firsts)):
            look = self._found[key] = self._free(*key)
            self._taken.update((look, *msgspec.structs.asdict(look).items()))

    def of(self, mechanism: str, variant: str = "") -> Look:
        """Return the look of a variant, or that of its mechanism where only the mechanism is
        known."""
        known = self._found.get((mechanism, variant)) or self._found.get((mechanism, ""))
        return known or _steps(mechanism)[0]

    def _free(self, mechanism: str, variant: str) -> Look:
        if not variant and mechanism in _ANCHORS:
            return _ANCHORS[mechanism]
        if not variant:
            return min(_steps(mechanism), key=self._clashes)
        own = self.of(mechanism)
        steps = _steps(mechanism, variant, own.colour)
        return min(
            steps,
            key=lambda look: (self._taken[look], look.marker != own.marker, self._clashes(look)),
        )

    def _clashes(self, look: Look) -> tuple[int, int, int]:
        """How often a look is taken whole, how often its colour, and how often another part."""
        taken = self._taken
        others = taken["dash", look.dash] + taken["marker", look.marker]
        return taken[look], taken["colour", look.colour], others


def _steps(mechanism: str, variant: str = "", colour: str | None = None) -> list[Look]:
    """Looks from the name's hash on, in a single colour where one is given."""
    start = _digest(f"{mechanism}:{variant}" if variant else mechanism)
    colours = COLOURS if colour is None else (colour,)
    dashes, markers = len(_DASHES), len(MARKERS)
    return [
        Look(
            colours[(start + place) % len(colours)],
            _DASHES[(start // len(colours) + place) % dashes],
            MARKERS[(start // (len(colours) * dashes) + place // len(colours)) % markers],
        )
        for place in range(len(colours) * dashes * markers)
    ]


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


_ANCHORS = {
    EXACT: Look(INK, "-", "o"),
    NO_MIXING: Look("#949494", (0, (1, 1.2)), "o"),
    LOCAL: Look("#949494", (0, (4, 1.5)), "s"),
}
"""Black for exact attention, grey for the controls: the floor dotted, local mixing dashed."""


_DIGITS = re.compile(r"(?<![\w#.])-?\d+\.\d{3,}")
"""Decimals of coordinates: two place them to a hundredth of a point."""


def draw(paint: Callable[[Any], None], width: float, height: float) -> str:
    """Return the SVG that `paint(figure)` draws; the same for the same data, whatever the user's
    settings of matplotlib.

    Sizes are in inches. Text stays text. No date, no version, no external reference.
    """
    empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    text = _drawn(paint, width, height, format="svg", metadata=empty).decode()
    # Identical images would share an id, and nothing refers to it.
    text = re.sub(r' id="image[0-9a-f]+"', "", text)
    text = _DIGITS.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), text)
    return compact(text.replace("\r\n", "\n"))


def draw_png(paint: Callable[[Any], None], width: float, height: float) -> bytes:
    """Return the same as a PNG, 200 dots an inch."""
    return _drawn(paint, width, height, format="png", metadata={"Software": None}, dpi=200)


def _drawn(paint: Callable[[Any], None], width: float, height: float, **how: Any) -> bytes:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.text import Text

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(wspace=0.06))
        paint(figure)
        for text in figure.findobj(Text):
            text.set_text(escape_controls(text.get_text()))
        _settle(figure)
        target = io.BytesIO()
        figure.savefig(target, **how)
    return target.getvalue()


def _settle(figure: Any) -> None:
    """Compute the layout here: `savefig` would draw everything once more to find it.

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
    """Return an SVG for HTML: ids of its own, a title, the width of the page."""
    from markupsafe import escape

    body = svg[svg.index("<svg") :]
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}-", body)
    body = body.replace("*{", f"#{prefix} *{{", 1)
    head, rest = body.split(">", 1)
    head = re.sub(r' (width|height|version)="[^"]*"', "", head)
    return f'{head} id="{prefix}" role="img" aria-label="{escape(title)}">{rest}'
