"""Plot of costs as multiples of exact attention's, against length: where lines go below one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from lra.core.catalogue import EXACT
from lra.report.cost_grid import Grid
from lra.report.crossover import crossover_value
from lra.report.model import Figure
from lra.report.plots.cost import title_of, unique
from lra.report.plots.lines import (
    LETTERS,
    WIDTH,
    Name,
    height_of,
    line_style,
    log_axes,
    margin_of,
    write_names,
)
from lra.report.plots.names import hollow_note, names, short_names
from lra.report.plots.style import FAINT, INK, MUTED, Looks, draw
from lra.report.rows import Key
from lra.report.sweeps import by_row
from lra.report.words import TIMES, listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEAR = 1.5
"""Largest factor between a line and exact attention at which it is named without crossing."""
_IN_A_ROW = 2
_KINDS = {"latency": "time", "state_bytes": "state"}


class _Line(NamedTuple):
    key: Key
    ratios: dict[int, float]
    at: float | None
    """Length from which it costs less, where that is among those compared."""
    text: str
    """Crossing in words, behind the mark of a busy machine."""

    @property
    def named(self) -> bool:
        """Whether it crosses or comes near."""
        ratios = self.ratios.values()
        near = any(1 / NEAR <= ratio <= NEAR for ratio in ratios)
        return near or min(ratios) < 1.0 < max(ratios) or self.at is not None


class _Panel(NamedTuple):
    grid: Grid
    lines: list[_Line]
    gone: int | None
    """Length from which exact attention has no memory."""

    @property
    def named(self) -> list[_Line]:
        """Lines with names."""
        return [line for line in self.lines if line.named]


def crossover_figure(
    id: str, grids: Sequence[Grid], crossings: pd.DataFrame, looks: Looks
) -> Figure | None:
    """Return a panel for each cost that has crossings; None below two mechanisms, whose ratios the
    tables and their pages show."""
    panels = [panel for grid in grids if (panel := _panel(grid, crossings)).lines]
    named = unique([line.key for panel in panels for line in panel.named])
    every = unique([line.key for panel in panels for line in panel.lines])
    if len(every) < 2:
        return None
    texts = dict(zip(named, short_names(named, LETTERS), strict=True))
    rows = math.ceil(len(panels) / _IN_A_ROW)
    columns = min(len(panels), _IN_A_ROW)
    height = height_of(max(len(panel.named) for panel in panels))
    margin = 0.1 + margin_of([*texts.values()])

    def paint(figure: Any) -> None:
        widths = [max(1.5, WIDTH / columns - margin), margin] * columns
        places = figure.subplots(rows, 2 * columns, width_ratios=widths, squeeze=False)
        pairs = [(row[2 * n], row[2 * n + 1]) for row in places for n in range(columns)]
        for panel, (axes, side) in zip(panels, pairs, strict=False):
            axes.set_title(title_of(panel.grid))
            axes.set_xlabel("sequence length")
            labels = _draw(axes, panel, texts, looks)
            write_names(side, axes.get_ylim(), labels, height, margin)
        for axes, side in pairs[len(panels) :]:
            axes.set_visible(False)
            side.set_visible(False)

    return Figure(
        id=id,
        title=f"Cost as a multiple of that of {EXACT}, against length",
        alt=f"Log-log plot of {listing([title_of(panel.grid) for panel in panels])} as multiples "
        f"of those of {EXACT}, for {listing(names(every))}; the tables have the crossings.",
        caption=_caption(panels) + hollow_note(every),
        svg=draw(paint, WIDTH, rows * height),
    )


def _caption(panels: Sequence[_Panel]) -> str:
    text = f"Below 1: costs less than {EXACT}. A ring: from there on, at the length after the name."
    if any(len(panel.named) < len(panel.lines) for panel in panels):
        text += f" Grey: neither crosses nor comes within {NEAR:g} {TIMES}."
    if any(panel.gone for panel in panels):
        text += f" Shaded: {EXACT} ran out of memory."
    return text


def _panel(grid: Grid, crossings: pd.DataFrame) -> _Panel:
    kind = _KINDS.get(grid.metric, "memory")
    rows = by_row(crossings, kind, grid.mode)
    lines = []
    for key in grid.keys:
        row, ratios = rows.get((key.origin, key.variant)), grid.ratios(key)
        if row is not None and ratios:
            inside = 0 < row.at < math.inf
            text = crossover_value(row).marked if inside else ""
            lines.append(_Line(key, ratios, row.at if inside else None, text))
    lost = [n for n, endings in grid.without_exact().items() if any(e[0] == "oom" for e in endings)]
    return _Panel(grid, lines, min(lost, default=None))


def _draw(axes: Axes, panel: _Panel, texts: dict[Key, str], looks: Looks) -> list[Name]:
    """Draw the lines with their crossings; return the names to write beside them."""
    lengths = panel.grid.lengths
    ratios = [ratio for line in panel.lines for ratio in line.ratios.values()]
    log_axes(axes, lengths, [1.0, *ratios], lambda ratio: f"{ratio:g} {TIMES}")
    axes.axhline(1.0, color=INK, linewidth=1.2, zorder=2)
    if panel.gone is not None:
        _shade(axes, [n for n in lengths if n < panel.gone], panel.gone)
    found = []
    for line in panel.lines:
        points = ([*line.ratios], [*line.ratios.values()])
        if not line.named:
            axes.plot(*points, color=FAINT, linewidth=1.0, zorder=1)
            continue
        style = line_style(line.key.origin, looks.of(line.key.mechanism, line.key.variant))
        axes.plot(*points, **style)
        if line.at is not None:
            axes.plot(
                [line.at], [1.0], "o", color=style["color"], markerfacecolor="white", ms=6, mew=1.4,
                zorder=5,
            )  # fmt: skip
        text = f"{texts[line.key]}  {line.text}".rstrip()
        found.append(Name(points[1][-1], text, style))
    return found


def _shade(axes: Axes, before: Sequence[int], gone: int) -> None:
    """Shade from halfway after the last length of exact attention, or the edge, to the edge."""
    start = math.sqrt(before[-1] * gone) if before else axes.get_xlim()[0]
    end = axes.get_xlim()[1]
    axes.axvspan(start, end, color=FAINT, alpha=0.5, linewidth=0, zorder=0)
    axes.text(
        math.sqrt(start * end), 0.98, f"{EXACT} OOM", color=MUTED, va="top", ha="center",
        transform=axes.get_xaxis_transform(), fontsize=8.5,
    )  # fmt: skip
