"""Plots of the error of approximations: against the budget and against the size of the inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from lra.report.errors import Errors
from lra.report.model import Figure
from lra.report.plots.lines import (
    WIDTH,
    Name,
    height_of,
    line_style,
    log_axes,
    margin_of,
    write_names,
)
from lra.report.plots.style import INK, MUTED, Looks, draw
from lra.report.words import TIMES, listing, shortened

_LETTERS = 40
_TICKS = 7
_LAW = {"color": INK, "linestyle": (0, (4, 3)), "linewidth": 0.9, "marker": "", "zorder": 4}


class _Line(NamedTuple):
    text: str
    points: Sequence[tuple[float, float]]
    style: dict[str, Any]


def budget_figure(errors: Errors, looks: Looks) -> Figure | None:
    """Return the error against the budget, each line with its declared law; None where nothing was
    measured at two budgets."""
    curves = errors.budgets
    if not curves:
        return None
    lines = []
    for curve in curves:
        alone = sum(one.key.mechanism == curve.key.mechanism for one in curves) == 1
        look = looks.of(curve.key.mechanism, "" if alone else curve.key.variant)
        reference = ", reference" if curve.key.origin == "reference" else ""
        name = f"{curve.title} [{curve.budget}]{reference}"
        lines.append(_Line(name, curve.points, line_style(curve.key.origin, look)))
        if curve.rate:
            (first, value), (last, _) = curve.points[0], curve.points[-1]
            fallen = value * (last / first) ** -curve.rate
            law = f"law of {curve.title}: budget^-{curve.rate:g}"
            lines.append(_Line(law, [(first, value), (last, fallen)], _LAW))
    budgets = [x for curve in curves for x, _ in curve.points]
    low, high = math.floor(math.log2(min(budgets))), math.ceil(math.log2(max(budgets)))
    step = max(1, math.ceil((high - low) / (_TICKS - 1)))
    laws = " Dashed: as declared, for inputs that are small enough." if _has_law(lines) else ""
    return Figure(
        id=f"error-budget-{errors.setting.id}",
        title=f"Error against budget at length {errors.lengths[-1]:,}",
        alt="Log-log plot of the relative error of the output against the budget, for "
        f"{listing([curve.title for curve in curves])}; the tables have the figures.",
        caption=f"Inputs {TIMES} {errors.scale:g}. Budgets are the settings in brackets; those of "
        f"two mechanisms differ in cost.{laws}",
        svg=_drawn(lines, "budget", [2.0**n for n in range(low, high + 1, step)]),
    )


def scale_figure(errors: Errors, looks: Looks) -> Figure | None:
    """Return the error against the size of the inputs; None where nothing was measured at two
    sizes."""
    curves = errors.by_scale
    if not curves:
        return None
    lines = []
    for curve in curves:
        look = looks.of(curve.key.mechanism, curve.key.variant)
        reference = ", reference" if curve.key.origin == "reference" else ""
        name = f"{curve.key.label}{reference}"
        lines.append(_Line(name, curve.points, line_style(curve.key.origin, look)))
        if curve.law:
            lines.append(_Line(f"predicted: {name}", curve.law, _LAW))
    laws = " Dashed: predicted to first order, where below 1." if _has_law(lines) else ""
    return Figure(
        id=f"error-scale-{errors.setting.id}",
        title=f"Error against the size of the inputs at length {errors.lengths[-1]:,}",
        alt="Log-log plot of the relative error of the output against the factor of queries and "
        f"keys, for {listing([curve.key.label for curve in curves])}; the tables have the figures.",
        caption=f"Each mechanism at its largest budget; exact ones are left out.{laws}",
        svg=_drawn(lines, "input scale", sorted({x for c in curves for x, _ in c.points})),
    )


def _has_law(lines: Sequence[_Line]) -> bool:
    return any(line.style is _LAW for line in lines)


def _drawn(lines: Sequence[_Line], across: str, ticks: Sequence[float]) -> str:
    texts = shortened([line.text for line in lines], _LETTERS)
    height, margin = height_of(len(texts)), margin_of(texts)
    values = [value for line in lines for _, value in line.points]
    xs = [x for line in lines for x, _ in line.points]

    def paint(figure: Any) -> None:
        from matplotlib.ticker import FixedLocator, FuncFormatter

        axes, side = figure.subplots(1, 2, width_ratios=[WIDTH - margin, margin])
        log_axes(axes, [1, 2], values, lambda value: f"{value:g}")
        axes.set_xlim(min(xs) / 1.1, max(xs) * 1.1)
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.set(xlabel=across, ylabel="relative error of the output")
        if min(values) <= 1.0 <= max(values):
            # An error of 1 is that of an output of zeros.
            axes.axhline(1.0, color=MUTED, linewidth=0.8, zorder=1)
        for line in lines:
            axes.plot(*zip(*line.points, strict=True), **line.style)
        names = [
            Name(line.points[-1][1], text, line.style)
            for line, text in zip(lines, texts, strict=True)
        ]
        write_names(side, axes.get_ylim(), names, height, margin)

    return draw(paint, WIDTH, height)
