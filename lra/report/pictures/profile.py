"""Stacked bars of what the parts of a training step take, a bar for each mechanism and task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lra.report.pictures.lines import LINE, WIDTH
from lra.report.pictures.style import draw
from lra.report.table import Figure, Row, Table, cut_note, names
from lra.report.words import apart, listing, shortened

_LETTERS = 42
_SHADES = ("#8bdab2", "#40b7ad", "#348fa7", "#37659e", "#413d7b", "#2e1e3b")
"""Of parts, from left to right: seaborn's mako, since single colours stand for mechanisms."""


def profile_figure(table: Table, parts: tuple[str, ...]) -> Figure:
    """Return the bars of a table of profiles, whose columns of parts hold shares."""
    texts = shortened(_labels(table.rows), _LETTERS)
    places = [table.columns.index(part) for part in parts]

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        ends = [0.0] * len(table.rows)
        for place, part, colour in zip(places, parts, _SHADES, strict=True):
            widths = [100 * (row.cells[place].value or 0.0) for row in table.rows]
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
        id=table.id,
        title="Parts of a training step",
        alt=f"Stacked bars of the parts of a training step of {listing(names(table.rows))}; the "
        "table above has their shares.",
        caption=f"From left to right: {listing(parts)}.{cut_note(table.rows, _LETTERS)}",
        svg=draw(paint, WIDTH, 1.6 + 1.6 * LINE * len(table.rows)),
    )


def _labels(rows: Sequence[Row]) -> list[str]:
    """The rows' labels; where several share one, with what of their notes tells them apart."""
    found = [row.label for row in rows]
    for label in {*found}:
        alike = [n for n, row in enumerate(rows) if row.label == label]
        if len(alike) > 1:
            told = apart([rows[n].note.split(", ") for n in alike])
            for n, words in zip(alike, told, strict=True):
                found[n] = f"{label} ({words})"
    return found
