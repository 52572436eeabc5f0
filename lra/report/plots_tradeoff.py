"""The figure of the Long Range Arena: accuracy against speed, circle area for memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lra.report.efficiency import EfficiencyTables
from lra.report.labels import Box, beside_circles
from lra.report.quality import QualityTable
from lra.report.rows import EXACT
from lra.report.style import INK, MUTED, draw, look
from lra.report.table import Cell, Figure, Row, names
from lra.report.words import TIMES, listing, quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 9.6, 5.2
_LARGEST = 1500.0
"""Area of the largest circle, in square points."""


class Circle(msgspec.Struct, frozen=True):
    """One mechanism in the figure."""

    row: Row
    """Of the accuracy table."""
    accuracy: float
    seconds: float
    memory: float
    elsewhere: bool
    """Measured on another machine class, and brought here by its ratios to exact attention."""


def tradeoff_figure(quality: QualityTable, costs: Sequence[EfficiencyTables]) -> Figure | None:
    """Return accuracy against speed of training; None with fewer than two mechanisms to place."""
    here = next((c for c in costs if not c.reference_only and "train" in c.latency), None)
    rows = _accuracies(quality)
    if here is None or not rows:
        return None
    length = _common_length(here, rows)
    found = [_circle(row, value, length, here, costs) for row, value in rows]
    circles = [circle for circle in found if circle is not None]
    if len(circles) < 2:
        return None
    placed = {(circle.row.origin, circle.row.variant) for circle in circles}
    missing = [
        row.label
        for row in quality.table.rows
        if row.mechanism and (row.origin, row.variant) not in placed
    ]
    table = here.latency["train"]
    exact = table.row(EXACT, "run")
    exact_cell = exact.cells[table.columns.index(length)] if exact else None

    def paint(figure: Any) -> None:
        _paint(figure.subplots(), circles, here.batch, exact_cell.value if exact_cell else None)
        what = "attention" if here.level == "attention" else "layer"
        figure.supxlabel(
            f"training speed of the {what} at length {length}, examples/s",
            fontsize=9.5,
            color=MUTED,
        )

    over = f"mean accuracy over {listing(quality.mean_of)}" if quality.mean_of else "accuracy"
    return Figure(
        id=quality.table.id.replace("quality", "tradeoff"),
        title="Accuracy against speed and memory",
        alt=f"Scatter plot of {over} against training speed at length {length}; the area of a "
        f"circle is peak memory. Shown: {listing([circle.row.title for circle in circles])}.",
        caption=f"{over[0].upper()}{over[1:]}; right is faster, up is better, small is lean. "
        "Area is the peak memory behind each name. Faint: accuracy of a reference row."
        + _marks(circles)
        + (f" Without a place for want of a figure: {listing(missing)}." if missing else ""),
        svg=draw(paint, _WIDTH, _HEIGHT),
    )


def _marks(circles: Sequence[Circle]) -> str:
    if not any(circle.elsewhere for circle in circles):
        return ""
    return (
        " Dashed outline: timed on another machine class, placed by its ratios of time and memory "
        f"to {EXACT} there."
    )


def _accuracies(quality: QualityTable) -> list[tuple[Row, float]]:
    """Mechanisms with a mean accuracy, or with that of the only task."""
    if not quality.mean_of and len(quality.columns) > 1:
        return []
    rows = [row for row in quality.table.rows if row.mechanism]
    return [(row, cell.value) for row in rows for cell in row.cells[-1:] if cell.value is not None]


def _common_length(here: EfficiencyTables, rows: Sequence[tuple[Row, float]]) -> str:
    """The longest length among those at which most of these mechanisms have a time."""
    table = here.latency["train"]
    timed = [found for row, _ in rows if (found := table.row(row.variant, "run"))]
    reached = [
        sum(row.cells[n].value is not None for row in timed) for n in range(len(table.columns))
    ]
    return max(zip(reached, table.columns, strict=True), key=lambda pair: (pair[0], int(pair[1])))[
        1
    ]


def _circle(
    row: Row,
    accuracy: float,
    length: str,
    here: EfficiencyTables,
    costs: Sequence[EfficiencyTables],
) -> Circle | None:
    """Place a mechanism by its own figures here, or by its ratios on another machine class."""
    own = _cost(here, row, length)
    if own:
        return Circle(row, accuracy, *own, elsewhere=False)
    exact = _cost(here, msgspec.structs.replace(row, variant=EXACT, origin="run"), length)
    for other in costs:
        ratios = _ratios(other, row, length) if other.reference_only else None
        if ratios and exact:
            time, memory = (ratio * base for ratio, base in zip(ratios, exact, strict=True))
            return Circle(row, accuracy, time, memory, elsewhere=True)
    return None


def _cells(costs: EfficiencyTables, row: Row, length: str) -> tuple[Cell, Cell] | None:
    """Time and memory of a mechanism; a reference accuracy may go with the run's own timing."""
    latency, memory = costs.latency.get("train"), costs.memory.get("train")
    if latency is None or memory is None or length not in latency.columns:
        return None
    place = latency.columns.index(length)
    for origin in dict.fromkeys((row.origin, "run", "reference")):
        time, room = latency.row(row.variant, origin), memory.row(row.variant, origin)
        if time and room:
            return time.cells[place], room.cells[place]
    return None


def _cost(costs: EfficiencyTables, row: Row, length: str) -> tuple[float, float] | None:
    cells = _cells(costs, row, length)
    if cells is None or not cells[0].value or not cells[1].value:
        return None
    return cells[0].value, cells[1].value


def _ratios(costs: EfficiencyTables, row: Row, length: str) -> tuple[float, float] | None:
    cells = _cells(costs, row, length)
    if cells is None or not cells[0].ratio or not cells[1].ratio:
        return None
    return cells[0].ratio, cells[1].ratio


def _paint(axes: Axes, circles: Sequence[Circle], batch: int, exact: float | None) -> None:
    speeds = [batch / circle.seconds for circle in circles]
    heights = [100 * circle.accuracy for circle in circles]
    biggest = max(circle.memory for circle in circles)
    areas = [_LARGEST * circle.memory / biggest for circle in circles]
    axes.set_ylabel("test accuracy, %")
    logarithmic = max(speeds) > 6 * min(speeds)
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(*_widened(min(speeds), max(speeds), logarithmic=logarithmic))
    axes.set_ylim(*_widened(min(heights), max(heights), logarithmic=False))
    for circle, x, y, area in zip(circles, speeds, heights, areas, strict=True):
        style = look(circle.row.mechanism, circle.row.variant)
        axes.scatter(
            [x],
            [y],
            s=area,
            facecolor=(style.colour, 0.3 if circle.row.origin == "run" else 0.08),
            edgecolor=style.colour,
            linewidth=1.6,
            linestyle=(0, (2, 1.5)) if circle.elsewhere else "-",
            zorder=3,
        )
    _name(axes, circles, list(zip(speeds, heights, strict=True)), areas)
    if exact is not None:
        speed = batch / exact
        top = axes.secondary_xaxis("top", functions=_ratio_to(speed))
        top.set_xlabel(f"{TIMES} the speed of {EXACT}", color=MUTED)
        _plain_ticks(top.xaxis, logarithmic=logarithmic)
    _plain_ticks(axes.xaxis, logarithmic=logarithmic)


def _ratio_to(speed: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Functions from examples per second to the ratio and back."""
    return (lambda x: x / speed), (lambda x: x * speed)


def _plain_ticks(axis: Any, *, logarithmic: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if logarithmic:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _widened(low: float, high: float, *, logarithmic: bool) -> tuple[float, float]:
    """Limits with room for circles and names."""
    if logarithmic:
        room = (high / low) ** 0.22
        return low / room, high * room
    room = 0.22 * (high - low) or 0.1 * high or 1.0
    return low - room, high + room


def _name(
    axes: Axes,
    circles: Sequence[Circle],
    points: Sequence[tuple[float, float]],
    areas: Sequence[float],
) -> None:
    """Write each name with its memory where it covers nothing."""
    wide, high = (_WIDTH - 0.9) * 72, (_HEIGHT - 1.2) * 72
    fraction = axes.transAxes.inverted()
    centres = [
        (float(u) * wide, float(v) * high)
        for u, v in (fraction.transform(axes.transData.transform(point)) for point in points)
    ]
    texts = [
        f"{name}, {quantity(circle.memory, 'B', most=2)}"
        for name, circle in zip(names([c.row for c in circles]), circles, strict=True)
    ]
    placed = beside_circles(
        centres,
        [(area / math.pi) ** 0.5 for area in areas],
        [(5.6 * len(text), 12.0) for text in texts],
        Box(0.0, 0.0, wide, high),
    )
    for point, text, label, circle in zip(points, texts, placed, circles, strict=True):
        axes.annotate(
            text,
            point,
            xytext=(label.dx, label.dy),
            textcoords="offset points",
            ha=label.align,
            va="center",
            fontsize=8.5,
            color=INK if circle.row.origin == "run" else MUTED,
        )
