"""Plots of time and memory against length, on two logarithmic axes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from lra.report.efficiency import EfficiencyTables, call_words
from lra.report.labels import spread
from lra.report.style import draw, look
from lra.report.table import Figure, Row, Table, names
from lra.report.words import listing, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 9.6
_Named = tuple[float, str, str]
_LINE = 0.19
"""Inches between the baselines of two labels."""


def cost_figure(costs: EfficiencyTables, metric: Literal["latency", "memory"]) -> Figure | None:
    """Return one panel per mode; None if nothing was measured at two lengths."""
    tables = costs.latency if metric == "latency" else costs.memory
    drawn = {mode: table for mode, table in tables.items() if _points_of(table)}
    if not any(len(table.columns) > 1 for table in drawn.values()):
        return None
    unit: Literal["s", "B"] = "s" if metric == "latency" else "B"
    rows = max(len(table.rows) for table in drawn.values())
    height = max(3.6, 1.2 + _LINE * rows)
    word = "time" if metric == "latency" else "peak memory"

    def paint(figure: Any) -> None:
        # Every panel has a narrow neighbour for the names of its lines.
        grid = figure.subplots(1, 2 * len(drawn), width_ratios=[1.0, 0.48] * len(drawn))
        for (mode, table), axes, margin in zip(drawn.items(), grid[::2], grid[1::2], strict=True):
            axes.set_title(f"{word} of a {call_words(mode)}")
            axes.set_xlabel("sequence length")
            labels = _panel(axes, table, unit)
            _label(margin, axes.get_ylim(), labels, gap=_LINE / (height - 1.0))

    first = next(iter(tables.values()))
    return Figure(
        id=f"{metric}-{first.id.rpartition('-')[2]}",
        title=f"{word.capitalize()} against length",
        alt=f"Log-log plot of {word} against sequence length for "
        f"{listing(names(first.rows))}; the tables have the figures.",
        caption="Behind each name: the exponent of length in a straight-line fit to its points. "
        "Hollow: reference. A cross at the top: an ending without a figure, such as OOM.",
        svg=draw(paint, _WIDTH, height),
    )


def _points_of(table: Table) -> list[tuple[int, float]]:
    return [point for row in table.rows for point in _points(table, row)]


def _points(table: Table, row: Row) -> list[tuple[int, float]]:
    pairs = zip(table.columns, row.cells, strict=True)
    return [(int(length), cell.value) for length, cell in pairs if cell.value]


def _panel(axes: Axes, table: Table, unit: Literal["s", "B"]) -> list[_Named]:
    """Draw a table's lines and return their last values, names and colours."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    lengths = [int(length) for length in table.columns]
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    values = [value for _, value in _points_of(table)]
    low, high = min(values), max(values)
    room = (high / low) ** 0.08 if high > low else 1.5
    axes.set_ylim(low / room, high * room)
    axes.set_xlim(lengths[0] / 1.1, lengths[-1] * 1.1)
    axes.xaxis.set_major_locator(FixedLocator(lengths))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{round(x)}"))
    steps = (1.0, 2.0, 5.0) if high / low < 200 else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _tick(y, unit)))
    labels: list[_Named] = []
    crosses: Counter[int] = Counter()
    for row, name in zip(table.rows, names(table.rows), strict=True):
        style, points = look(row.mechanism, row.variant), _points(table, row)
        if points:
            axes.plot(
                *zip(*points, strict=True),
                color=style.colour,
                linestyle=style.dash,
                marker=style.marker,
                markerfacecolor="white" if row.origin == "reference" else style.colour,
                linewidth=1.2 if row.origin == "reference" else 2.0,
                zorder=3,
            )
            labels.append((points[-1][1], f"{name}{_growth(points)}", style.colour))
        for length, cell in zip(lengths, row.cells, strict=True):
            if cell.value is None:
                crosses[length] += 1
                axes.plot(
                    [length],
                    [1.03 - 0.045 * crosses[length]],
                    "x",
                    color=style.colour,
                    transform=axes.get_xaxis_transform(),
                )
    return labels


def _tick(value: float, unit: Literal["s", "B"]) -> str:
    size, symbol = scale_of([value], unit)
    return f"{value / size:g} {symbol}"


def _growth(points: Sequence[tuple[int, float]]) -> str:
    """The exponent of length in a least-squares line through the logarithms."""
    if len(points) < 3:
        return ""
    x, y = ([math.log(value) for value in side] for side in zip(*points, strict=True))
    middle = sum(x) / len(x)
    slope = sum((a - middle) * b for a, b in zip(x, y, strict=True)) / sum(
        (a - middle) ** 2 for a in x
    )
    return f"  n^{slope:.1f}"


def _label(axes: Axes, limits: tuple[float, float], labels: Sequence[_Named], gap: float) -> None:
    """Write names level with their lines' ends, apart from each other."""
    axes.axis("off")
    low, high = map(math.log, limits)
    wanted = sorted(
        ((math.log(y) - low) / (high - low), text, colour) for y, text, colour in labels
    )
    places = spread([place for place, _, _ in wanted], gap)
    for (_, text, colour), place in zip(wanted, places, strict=True):
        label = axes.text(0.0, place, text, va="center", fontsize=8.5, color=colour)
        label.set_in_layout(False)
