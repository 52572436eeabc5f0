"""Plots of costs against length, on two logarithmic axes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lra.core.records import FAILED
from lra.report.cost_grid import Grid
from lra.report.model import Figure
from lra.report.plots.lines import (
    LETTERS,
    WIDTH,
    Name,
    height_of,
    line_style,
    log_axes,
    margin_of,
    tick_of,
    write_names,
)
from lra.report.plots.names import hollow_note, names, short_names
from lra.report.plots.style import Looks, draw
from lra.report.rows import Key
from lra.report.words import Unit, listing
from lra.verdict.growth import LEAST, slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLES = {
    ("latency", "train"): "time of a training step",
    ("latency", "forward"): "time of a forward pass",
    ("latency", "decode"): "time of one token",
    ("state_bytes", "decode"): "state after the prompt",
}
_MODES = {"train": "training step", "forward": "forward pass"}
_CROSS = 0.045
"""Share of a panel's height for a cross."""


def title_of(grid: Grid) -> str:
    """Return the title of a panel: `time of a training step`."""
    return _TITLES.get((grid.metric, grid.mode), f"peak memory of a {_MODES.get(grid.mode, '')}")


def cost_figure(
    id: str, title: str, grids: Sequence[Grid], looks: Looks, axis: str = "sequence length"
) -> Figure | None:
    """Return a panel for each cost; None where none has two lengths."""
    drawn = [grid for grid in grids if any(grid.points(key) for key in grid.keys)]
    if not any(len(grid.lengths) > 1 for grid in drawn):
        return None
    rows = {id: _rows(grid) for id, grid in enumerate(drawn)}
    every = [key for keys in rows.values() for key in keys]
    texts = dict(zip(unique(every), short_names(unique(every), LETTERS), strict=True))
    height = height_of(max(map(len, rows.values())))
    margin = margin_of([*texts.values()])
    panel = max(1.5, WIDTH / len(drawn) - margin)

    def paint(figure: Any) -> None:
        # Every panel has a narrow neighbour for the names of its lines.
        places = figure.subplots(1, 2 * len(drawn), width_ratios=[panel, margin] * len(drawn))
        for n, (axes, side) in enumerate(zip(places[::2], places[1::2], strict=True)):
            axes.set_title(title_of(drawn[n]))
            axes.set_xlabel(axis)
            labels = _panel(axes, drawn[n], rows[n], texts, looks)
            write_names(side, axes.get_ylim(), labels, height, margin)

    busy = any(place.disturbed for grid in drawn for place in grid.places.values())
    failed = any(crosses(grid, key) for grid in drawn for key in grid.keys)
    return Figure(
        id=id,
        title=title,
        alt=f"Log-log plot of {listing([title_of(grid) for grid in drawn])} against {axis} for "
        f"{listing(names(unique(every)))}; the tables have the figures.",
        caption="After each name: the fitted exponent of length."
        + hollow_note(every)
        + (" A cross at the top: a failure, such as OOM." if failed else "")
        + (" Some points were timed on a busy machine: see the table." if busy else ""),
        svg=draw(paint, WIDTH, height),
    )


def unique(keys: Sequence[Key]) -> list[Key]:
    """Return the distinct keys, in order."""
    return list(dict.fromkeys(keys))


def crosses(grid: Grid, key: Key) -> list[int]:
    """Return the lengths at which a row failed, such as for lack of memory."""
    found = {n: grid.places.get((key, n)) for n in grid.lengths}
    return [
        n
        for n, place in found.items()
        if place and not place.known and any(_is_failure(end) for end in place.endings)
    ]


def _is_failure(ending: tuple[str, str, str]) -> bool:
    status, failure, _ = ending
    return status in FAILED or failure == "Pruned"


def _rows(grid: Grid) -> list[Key]:
    """Rows with a figure or a failure."""
    return [key for key in grid.keys if grid.points(key) or crosses(grid, key)]


def _panel(
    axes: Axes, grid: Grid, keys: Sequence[Key], texts: Mapping[Key, str], looks: Looks
) -> list[Name]:
    """Draw lines and crosses; return the names to write beside them."""
    unit: Unit = "s" if grid.metric == "latency" else "B"
    values = [value for key in keys for value in grid.points(key).values()]
    log_axes(axes, grid.lengths, values, lambda value: tick_of(value, unit))
    failed = Counter(n for key in keys for n in crosses(grid, key))
    room = (max(values) / min(values)) ** 0.08 if max(values) > min(values) else 1.5
    axes.set_ylim(top=axes.get_ylim()[1] * room ** max(failed.values(), default=0))
    labels, stacked = [], Counter[int]()
    for key in keys:
        known = grid.points(key)
        style = line_style(key.origin, looks.of(key.mechanism, key.variant))
        if known:
            axes.plot([*known], [*known.values()], **style)
        for n in crosses(grid, key):
            stacked[n] += 1
            top = axes.get_xaxis_transform()
            axes.plot([n], [1.03 - _CROSS * stacked[n]], "x", color=style["color"], transform=top)
        value = known[max(known)] if known else axes.get_ylim()[1]
        labels.append(Name(value, f"{texts[key]}{_exponent(known)}", style))
    return labels


def _exponent(known: Mapping[int, float]) -> str:
    """Slope of the least-squares line through the logarithms, without a sign before zero."""
    return f"  n^{round(slope(known), 1) + 0.0:.1f}" if len(known) >= LEAST else ""
