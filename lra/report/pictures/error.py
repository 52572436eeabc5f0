"""Plot of the error against the budget, on two logarithmic axes, with the declared law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lra.report.error.tables import Curve, ErrorTables, beside_own
from lra.report.pictures.lines import WIDTH
from lra.report.pictures.style import INK, MUTED, Looks, draw
from lra.report.table import Figure
from lra.report.words import TIMES, listing, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_IN_A_ROW = 3
_PANEL = 3.1
"""Inches that a row of panels is high."""
_LINE = 0.22
"""Inches that a line of the legend takes."""
_LETTERS = 40
"""The longest name of a line."""


def error_figure(errors: ErrorTables, looks: Looks) -> Figure | None:
    """Return one panel per input scale; None if nothing was measured at two budgets."""
    drawn = {scale: curves for scale, curves in errors.curves.items() if curves}
    if not drawn:
        return None
    rows, columns = math.ceil(len(drawn) / _IN_A_ROW), min(len(drawn), _IN_A_ROW)
    names = [*dict.fromkeys(_name(c) for curves in drawn.values() for c in curves)]
    laws = [*dict.fromkeys(_law(c) for curves in drawn.values() for c in curves if c.rate)]
    across = 3 if columns > 1 else 2
    height = rows * _PANEL + _LINE * math.ceil((len(names) + len(laws)) / across) + 0.3

    def paint(figure: Any) -> None:
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        flat = [axes for row in panels for axes in row]
        handles: dict[str, Any] = {}
        for axes, (scale, curves) in zip(flat, drawn.items(), strict=False):
            axes.set_title(f"inputs {TIMES} {scale:g}")
            _panel(axes, curves, looks, handles)
        for axes in flat[len(drawn) :]:
            axes.set_visible(False)
        _scales(flat[0], [c for curves in drawn.values() for c in curves])
        for axes in panels[-1]:
            axes.set_xlabel("budget")
        for row in panels:
            row[0].set_ylabel("relative error of the output")
        order = [name for name in (*names, *laws) if name in handles]
        figure.legend(
            [handles[name] for name in order],
            shortened(order, _LETTERS),
            loc="outside lower left",
            ncols=across,
            frameon=False,
            fontsize=8.5,
        )

    mechanisms = {c.mechanism for curves in drawn.values() for c in curves}
    titles = listing([*dict.fromkeys(c.title for curves in drawn.values() for c in curves)])
    return Figure(
        id=f"error-{errors.number}",
        title=f"Error against budget at length {errors.length}",
        alt=f"Log-log plot of the relative error of the output against the budget, for {titles}; "
        "the tables have the figures.",
        caption=" ".join([_caption(names, laws), *beside_own(errors.own_keys, mechanisms)]),
        svg=draw(paint, WIDTH, height),
    )


def _caption(names: Sequence[str], laws: Sequence[str]) -> str:
    told = "A budget is the setting in brackets; budgets of two mechanisms are not alike in cost."
    if any("reference" in name for name in names):
        told += " Hollow: reference."
    if laws:
        told += (
            " Thin and dashed, through a line's first point: the law that the mechanism declares, "
            "which holds where inputs are small enough."
        )
    return told


def _panel(axes: Axes, curves: Sequence[Curve], looks: Looks, handles: dict[str, Any]) -> None:
    """Draw the lines of one input scale, each with its law; keeps one handle for each name."""
    for curve in curves:
        look, reference = looks[curve.mechanism, curve.title], curve.origin == "reference"
        (handles[_name(curve)],) = axes.plot(
            *zip(*curve.points, strict=True),
            color=look.colour,
            linestyle=look.dash,
            marker=look.marker,
            markerfacecolor="white" if reference else look.colour,
            linewidth=1.2 if reference else 2.0,
            zorder=3,
        )
        if curve.rate:
            first, value = curve.points[0]
            ends = [first, curve.points[-1][0]]
            (handles[_law(curve)],) = axes.plot(
                ends,
                [value * (end / first) ** -curve.rate for end in ends],
                color=INK,
                linestyle=(0, (4, 3)),
                linewidth=0.9,
                zorder=4,
            )


def _scales(axes: Axes, curves: Sequence[Curve]) -> None:
    """Set logarithmic axes with plain ticks; panels share them."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    budgets = sorted({x for curve in curves for x, _ in curve.points})
    errors = [y for curve in curves for _, y in curve.points]
    low, high = math.floor(math.log2(budgets[0])), math.ceil(math.log2(budgets[-1]))
    step = max(1, math.ceil((high - low) / 6))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator([2.0**n for n in range(low, high + 1, step)]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    decades = max(errors) / min(errors) > 200
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if decades else (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    if min(errors) <= 1.0 <= max(errors):
        for panel in axes.figure.axes:
            # As far off as an output of zero.
            panel.axhline(1.0, color=MUTED, linewidth=0.8, zorder=1)


def _name(curve: Curve) -> str:
    origin = ", reference" if curve.origin == "reference" else ""
    return f"{curve.title} [{curve.budget}]{origin}"


def _law(curve: Curve) -> str:
    assert curve.rate is not None
    budget = curve.budget if " " not in curve.budget else f"({curve.budget})"
    return f"declared law of {curve.title}: {budget}^-{curve.rate:g}"
