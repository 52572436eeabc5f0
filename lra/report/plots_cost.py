"""Plots of time and memory against length, on two logarithmic axes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from lra.report.efficiency import EfficiencyTables, call_words
from lra.report.labels import spread
from lra.report.style import Look, Looks, draw
from lra.report.table import Figure, Row, Table, cut_note, names, short_names
from lra.report.words import is_failure, listing, scale_of
from lra.verdict.growth import LEAST, slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 9.6
_LINE = 0.19
"""Inches between the baselines of two labels."""
_LETTER = 0.084
"""Inches that a letter of a label takes."""
_SAMPLE = (0.0, 0.18, 0.36)
"""Where a name's piece of line lies, in inches."""
_LETTERS = 22
"""The longest name that leaves room for two panels."""


class _Name(NamedTuple):
    value: float
    """Where the line ends, or the top of the panel if it has no point."""
    text: str
    line: dict[str, Any]
    """How it is drawn."""


def cost_figure(
    costs: EfficiencyTables, metric: Literal["latency", "memory"], looks: Looks
) -> Figure | None:
    """Return one panel per mode; None if nothing was measured at two lengths."""
    tables = costs.latency if metric == "latency" else costs.memory
    drawn = {mode: _drawn(table) for mode, table in tables.items() if _points_of(table)}
    if not any(len(table.columns) > 1 for table in drawn.values()):
        return None
    unit: Literal["s", "B"] = "s" if metric == "latency" else "B"
    rows = max(len(table.rows) for table in drawn.values())
    height = max(3.6, 1.2 + _LINE * rows)
    longest = max(
        len(name) for table in drawn.values() for name in short_names(table.rows, _LETTERS)
    )
    margin = 1.1 + _LETTER * longest
    panel = max(1.5, _WIDTH / len(drawn) - margin)
    word = "time" if metric == "latency" else "peak memory"

    def paint(figure: Any) -> None:
        # Every panel has a narrow neighbour for the names of its lines.
        grid = figure.subplots(1, 2 * len(drawn), width_ratios=[panel, margin] * len(drawn))
        for (mode, table), axes, side in zip(drawn.items(), grid[::2], grid[1::2], strict=True):
            axes.set_title(f"{word} of a {call_words(mode)}")
            axes.set_xlabel("sequence length")
            labels = _panel(axes, table, unit, looks)
            _label(side, axes.get_ylim(), labels, gap=_LINE / (height - 1.0), width=margin)

    first = next(iter(tables.values()))
    busy = any(
        cell.text.startswith("!") for t in tables.values() for r in t.rows for cell in r.cells
    )
    return Figure(
        id=f"{metric}-{first.id.rpartition('-')[2]}",
        title=f"{word.capitalize()} against length",
        alt=f"Log-log plot of {word} against sequence length for "
        f"{listing(names(first.rows))}; the tables have the figures.",
        caption="Behind each name: the exponent of length in a straight-line fit to its points. "
        "Hollow: reference. A cross at the top: a failure, such as OOM."
        + (" Figures of a busy machine (! in the table) are drawn as measured." if busy else "")
        + cut_note([row for table in drawn.values() for row in table.rows], _LETTERS),
        svg=draw(paint, _WIDTH, height),
    )


def _drawn(table: Table) -> Table:
    """The table without rows that have neither a figure nor a failure."""
    rows = tuple(
        row for row in table.rows if any(cell.value or is_failure(cell.text) for cell in row.cells)
    )
    return msgspec.structs.replace(table, rows=rows)


def _points_of(table: Table) -> list[tuple[int, float]]:
    return [point for row in table.rows for point in _points(table, row)]


def _points(table: Table, row: Row) -> list[tuple[int, float]]:
    pairs = zip(table.columns, row.cells, strict=True)
    return [(int(length), cell.value) for length, cell in pairs if cell.value]


def _panel(axes: Axes, table: Table, unit: Literal["s", "B"], looks: Looks) -> list[_Name]:
    """Draw a table's lines and crosses; return the names to write beside them."""
    _scales(axes, table, unit)
    labels: list[_Name] = []
    crosses: Counter[str] = Counter()
    for row, name in zip(table.rows, short_names(table.rows, _LETTERS), strict=True):
        points = _points(table, row)
        style = _line(row, looks[row.mechanism, row.variant])
        if points:
            axes.plot(*zip(*points, strict=True), **style)
        for length, cell in zip(table.columns, row.cells, strict=True):
            if is_failure(cell.text):
                height = 1.03 - 0.045 * (crosses[length] + 1)
                crosses[length] += 1
                top = axes.get_xaxis_transform()
                axes.plot([int(length)], [height], "x", color=style["color"], transform=top)
        value = points[-1][1] if points else axes.get_ylim()[1]
        labels.append(_Name(value, f"{name}{_growth(points)}", style))
    return labels


def _scales(axes: Axes, table: Table, unit: Literal["s", "B"]) -> None:
    """Set logarithmic axes with plain ticks, and room at the top for crosses."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    lengths = [int(length) for length in table.columns]
    values = [value for _, value in _points_of(table)]
    low, high = min(values), max(values)
    room = (high / low) ** 0.08 if high > low else 1.5
    crosses = max(
        sum(is_failure(row.cells[n].text) for row in table.rows) for n in range(len(lengths))
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(lengths[0] / 1.1, lengths[-1] * 1.1)
    axes.set_ylim(low / room, high * room ** (1 + crosses))
    axes.tick_params(axis="x", rotation=0 if len(lengths) < 6 else 45)
    axes.xaxis.set_major_locator(FixedLocator(lengths))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{round(x)}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 200 else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _tick(y, unit)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())


def _line(row: Row, style: Look) -> dict[str, Any]:
    reference = row.origin == "reference"
    return {
        "color": style.colour,
        "linestyle": style.dash,
        "marker": style.marker,
        "markerfacecolor": "white" if reference else style.colour,
        "linewidth": 1.2 if reference else 2.0,
        "zorder": 3,
    }


def _tick(value: float, unit: Literal["s", "B"]) -> str:
    size, symbol = scale_of([value], unit)
    return f"{value / size:g} {symbol}"


def _growth(points: Sequence[tuple[int, float]]) -> str:
    """The exponent of length in a least-squares line through the logarithms."""
    return f"  n^{slope(dict(points)):.1f}" if len(points) >= LEAST else ""


def _label(
    axes: Axes, limits: tuple[float, float], labels: Sequence[_Name], gap: float, width: float
) -> None:
    """Write names level with their lines' ends, apart from each other, each after its line."""
    axes.axis("off")
    axes.set(xlim=(0, width), ylim=(0, 1))
    low, high = map(math.log, limits)
    ordered = sorted(labels, key=lambda one: (one.value, one.text))
    places = spread([(math.log(one.value) - low) / (high - low) for one in ordered], gap)
    for one, place in zip(ordered, places, strict=True):
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
