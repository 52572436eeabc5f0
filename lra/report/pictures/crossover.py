"""Plot of costs as multiples of exact attention's, against length: where lines go below one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lra.report.costs.derived import Column
from lra.report.costs.tables import EfficiencyTables, call_words
from lra.report.pictures.lines import (
    LETTERS,
    WIDTH,
    Name,
    height_of,
    line_style,
    log_axes,
    margin_of,
    write_names,
)
from lra.report.pictures.style import FAINT, INK, MUTED, Looks, draw
from lra.report.rows import EXACT
from lra.report.table import Cell, Figure, Row, Table, cut_note, hollow_note, names, short_names
from lra.report.words import STATUS, TIMES, listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEAR = 1.5
"""What comes within this factor of exact attention is named even where it does not cross."""
_IN_A_ROW = 2


class _Line(NamedTuple):
    row: Row
    points: list[tuple[int, float]]
    """Lengths and ratios."""
    crossing: Cell
    """Of the table of crossings."""

    @property
    def named(self) -> bool:
        """Whether it crosses or comes near."""
        ratios = [ratio for _, ratio in self.points]
        near = any(1 / NEAR <= ratio <= NEAR for ratio in ratios)
        return near or min(ratios) < 1.0 < max(ratios) or self.crossing.value is not None


class _Panel(NamedTuple):
    title: str
    lengths: list[int]
    gone: int | None
    """The length from which exact attention has no memory."""
    lines: list[_Line]

    @property
    def named(self) -> list[_Line]:
        """The lines that have names."""
        return [line for line in self.lines if line.named]


def crossover_figure(costs: EfficiencyTables, looks: Looks) -> Figure | None:
    """Return a panel for each column of the table of crossings; None where there is no ratio."""
    if costs.crossover is None:
        return None
    panels = [
        panel
        for place, column in enumerate(costs.derived)
        if (panel := _panel(costs, costs.crossover, place, column)).lines
    ]
    if not panels:
        return None
    rows = math.ceil(len(panels) / _IN_A_ROW)
    columns = min(len(panels), _IN_A_ROW)
    height = height_of(max(len(panel.named) for panel in panels))
    named = [line.row for panel in panels for line in panel.named]
    margin = 0.1 + margin_of(short_names(named, LETTERS))

    def paint(figure: Any) -> None:
        widths = [max(1.5, WIDTH / columns - margin), margin] * columns
        grid = figure.subplots(rows, 2 * columns, width_ratios=widths, squeeze=False)
        places = [(row[2 * n], row[2 * n + 1]) for row in grid for n in range(columns)]
        for panel, (axes, side) in zip(panels, places, strict=False):
            axes.set_title(panel.title)
            axes.set_xlabel("sequence length")
            labels = _draw(axes, panel, looks)
            write_names(side, axes.get_ylim(), labels, height, margin)
        for axes, side in places[len(panels) :]:
            axes.set_visible(False)
            side.set_visible(False)

    every = [line.row for panel in panels for line in panel.lines]
    return Figure(
        id=costs.crossover.id,
        title=f"Cost as a multiple of that of {EXACT}, against length",
        alt=f"Log-log plot of {listing([panel.title for panel in panels])} as multiples of those "
        f"of {EXACT}, for {listing([*dict.fromkeys(names(every))])}; the table has the crossings.",
        caption=_caption(panels) + cut_note(named, LETTERS),
        svg=draw(paint, WIDTH, rows * height),
    )


def _caption(panels: Sequence[_Panel]) -> str:
    told = (
        f"Below 1: costs less than {EXACT}, median against median. A ring: from there on, at "
        "about the length after the name; the table says how sure that is."
    )
    if any(len(panel.named) < len(panel.lines) for panel in panels):
        told += f" Grey, without a name: neither crosses nor comes within {NEAR:g} {TIMES}."
    if any(panel.gone for panel in panels):
        told += (
            f" Shaded: {EXACT} ran out of memory, so that there is no ratio; what has a figure "
            "there costs less."
        )
    if any(line.crossing.busy for panel in panels for line in panel.named):
        told += " !: the machine was busy during some of the timings."
    return told + hollow_note(line.row for panel in panels for line in panel.lines)


def _panel(costs: EfficiencyTables, crossings: Table, place: int, column: Column) -> _Panel:
    tables = {"time": costs.latency, "memory": costs.memory, "state": costs.state}[column.kind]
    table = tables[column.mode]
    lengths = [int(length) for length in table.columns]
    lines = []
    for crossing in crossings.rows:
        row = table.row(crossing.variant, crossing.origin)
        if row is None:
            continue
        pairs = zip(lengths, row.cells, strict=True)
        points = [(length, cell.ratio) for length, cell in pairs if cell.ratio]
        if points:
            lines.append(_Line(row, points, crossing.cells[place]))
    exact = [row for row in table.rows if row.mechanism == EXACT and row.origin == "run"]
    gone = [
        length
        for row in exact[:1]
        for length, cell in zip(lengths, row.cells, strict=True)
        if cell.text == STATUS["oom"]
    ]
    word = {"time": "time of", "memory": "peak memory of", "state": "state before"}[column.kind]
    return _Panel(f"{word} a {call_words(column.mode)}", lengths, min(gone, default=None), lines)


def _draw(axes: Axes, panel: _Panel, looks: Looks) -> list[Name]:
    """Draw the lines with their crossings; return the names to write beside them."""
    ratios = [ratio for line in panel.lines for _, ratio in line.points]
    log_axes(axes, panel.lengths, [1.0, *ratios], lambda ratio: f"{ratio:g} {TIMES}")
    axes.axhline(1.0, color=INK, linewidth=1.2, zorder=2)
    if panel.gone is not None:
        # From halfway after the last length that it did, or from the edge, to the edge.
        before = [n for n in panel.lengths if n < panel.gone]
        start = math.sqrt(before[-1] * panel.gone) if before else axes.get_xlim()[0]
        axes.axvspan(start, axes.get_xlim()[1], color=FAINT, alpha=0.5, linewidth=0, zorder=0)
        top = axes.get_xaxis_transform()
        middle = math.sqrt(start * axes.get_xlim()[1])
        text = f"{EXACT} OOM"
        axes.text(
            middle, 0.98, text, color=MUTED, transform=top, va="top", ha="center", fontsize=8.5
        )
    found = []
    texts = dict(
        zip(
            [id(line) for line in panel.named],
            short_names([line.row for line in panel.named], LETTERS),
            strict=True,
        )
    )
    for line in panel.lines:
        if id(line) not in texts:
            axes.plot(*zip(*line.points, strict=True), color=FAINT, linewidth=1.0, zorder=1)
            continue
        style = line_style(line.row, looks[line.row.mechanism, line.row.variant])
        axes.plot(*zip(*line.points, strict=True), **style)
        at, told = line.crossing.value, ""
        if at is not None:
            told = f"  {line.crossing.marked.replace('about ', '')}"
            axes.plot(
                [at], [1.0], "o", color=style["color"], markerfacecolor="white", ms=6, mew=1.4,
                zorder=5,
            )  # fmt: skip
        found.append(Name(line.points[-1][1], f"{texts[id(line)]}{told}", style))
    return found
