"""Stacked bars of the parts of a training step, one for each mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lra.report.model import Figure
from lra.report.plots.lines import LINE, WIDTH
from lra.report.plots.style import draw
from lra.report.words import listing, shortened

_LETTERS = 42
_SHADES = ("#8bdab2", "#40b7ad", "#348fa7", "#37659e", "#413d7b", "#2e1e3b")
"""Shades of parts, left to right: seaborn's mako, since other colours stand for mechanisms."""


def profile_figure(
    id: str, rows: Sequence[tuple[str, Mapping[str, float]]], parts: tuple[str, ...]
) -> Figure | None:
    """Return a bar for each name with shares by part; None where no row has shares."""
    if not any(shares for _, shares in rows):
        return None
    names = [name for name, _ in rows]
    texts = shortened(names, _LETTERS)

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        ends = [0.0] * len(rows)
        for part, colour in zip(parts, _SHADES, strict=True):
            widths = [100 * shares.get(part, 0.0) for _, shares in rows]
            axes.barh(
                range(len(ends)), widths, left=ends, height=0.7, color=colour, label=part,
                edgecolor="white", linewidth=0.6,
            )  # fmt: skip
            ends = [end + width for end, width in zip(ends, widths, strict=True)]
        axes.set_xlim(0, 100)
        axes.set_ylim(len(ends) - 0.5, -0.5)
        axes.set_yticks(range(len(ends)), texts)
        axes.set_xlabel("% of a step's parts")
        figure.legend(loc="outside lower left", ncols=6, frameon=False)

    return Figure(
        id=id,
        title="Parts of a training step",
        alt=f"Stacked bars of the parts of a training step of {listing(names)}; the table has "
        "their shares.",
        caption=f"From left to right: {listing(parts)}.",
        svg=draw(paint, WIDTH, 1.6 + 1.6 * LINE * len(rows)),
    )
