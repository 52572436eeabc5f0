"""Plot of the error against the size of the inputs, with the error that theory predicts."""

from __future__ import annotations

from typing import Any

from lra.report.error.scale import ScaleCurve
from lra.report.error.tables import ErrorTables, beside_own
from lra.report.pictures.lines import (
    WIDTH,
    Name,
    height_of,
    line_style,
    log_axes,
    margin_of,
    write_names,
)
from lra.report.pictures.style import INK, MUTED, Looks, draw
from lra.report.table import Figure, cut_note, hollow_note, names, short_names
from lra.report.words import listing

_LETTERS = 34
_LAW = {"color": INK, "linestyle": (0, (4, 3)), "linewidth": 0.9, "marker": ".", "zorder": 4}


def error_scale_figure(errors: ErrorTables, looks: Looks) -> Figure | None:
    """Return one panel at the longest length; None if nothing was measured at two scales."""
    curves = errors.by_scale
    if not curves:
        return None
    rows = [curve.row for curve in curves]
    texts = short_names(rows, _LETTERS)
    laws = [f"predicted: {text}" for c, text in zip(curves, texts, strict=True) if c.law]
    height = height_of(len(texts) + len(laws))
    margin = margin_of([*texts, *laws])

    def paint(figure: Any) -> None:
        axes, side = figure.subplots(1, 2, width_ratios=[WIDTH - margin, margin])
        values = [value for c in curves for _, value in (*c.points, *c.law)]
        log_axes(axes, [1, 2], values, lambda value: f"{value:g}")
        _across(axes, [scale for c in curves for scale, _ in c.points])
        axes.set_xlabel("input scale")
        axes.set_ylabel("relative error of the output")
        if min(values) <= 1.0 <= max(values):
            # As far off as an output of zero.
            axes.axhline(1.0, color=MUTED, linewidth=0.8, zorder=1)
        found = []
        for curve, text in zip(curves, texts, strict=True):
            found += _draw(axes, curve, text, looks)
        write_names(side, axes.get_ylim(), found, height, margin)

    told = ""
    if laws:
        told = (
            " Thin and dashed: what theory predicts of these inputs to first order, as the "
            "mechanism declares it, drawn where that is below 1."
        )
    told += hollow_note(rows)
    told += "".join(
        f" {one}" for one in beside_own(errors.own_keys, {row.mechanism for row in rows})
    )
    return Figure(
        id=f"error-scale-{errors.number}",
        title=f"Error against the size of the inputs at length {errors.length}",
        alt="Log-log plot of the relative error of the output against the factor of queries and "
        f"keys, for {listing(names(rows))}; the tables have the figures.",
        caption="Queries and keys are N(0, 1) times the input scale; each mechanism at the largest "
        "of its budgets. What is exact but for rounding is left out."
        + told
        + cut_note(rows, _LETTERS),
        svg=draw(paint, WIDTH, height),
    )


def _draw(axes: Any, curve: ScaleCurve, text: str, looks: Looks) -> list[Name]:
    """Draw a curve and its law; return their names."""
    # A reference of other budgets than the run's has a look of its own.
    style = line_style(curve.row, looks[curve.row.mechanism, curve.row.variant])
    axes.plot(*zip(*curve.points, strict=True), **style)
    found = [Name(curve.points[-1][1], text, style)]
    if curve.law:
        axes.plot(*zip(*curve.law, strict=True), **_LAW)
        found.append(Name(curve.law[-1][1], f"predicted: {text}", _LAW))
    return found


def _across(axes: Any, scales: list[float]) -> None:
    """Ticks at the scales that were measured."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    axes.set_xlim(min(scales) / 1.1, max(scales) * 1.1)
    axes.xaxis.set_major_locator(FixedLocator(sorted(set(scales))))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
