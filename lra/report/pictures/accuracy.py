"""Plot of accuracy by task, beside the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lra.report.pictures.lines import WIDTH
from lra.report.pictures.style import INK, MUTED, Looks, draw, look
from lra.report.quality.tables import QualityTable
from lra.report.rows import NO_MIXING
from lra.report.table import Figure, Row, cut_note, hollow_note, names, short_names
from lra.report.words import listing, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BASELINES: dict[str, tuple[str, Any]] = {
    "majority": (MUTED, (0, (1, 1.5))),
    "bag of tokens": ("#7a5195", (0, (4, 2))),
    "rule of thumb": ("#7f6000", (0, (5, 1.5, 1, 1.5))),
}
_ACROSS = 5
"""Panels side by side."""
_LETTERS = 80
"""Letters of titles that stand side by side."""


def quality_figure(quality: QualityTable, looks: Looks) -> Figure | None:
    """Return accuracy by task: a dot per mechanism, a line per baseline."""
    table = quality.table
    mechanisms = [row for row in table.rows if row.mechanism and row.mechanism != NO_MIXING]
    if not mechanisms:
        return None
    lines = [row for row in table.rows if row not in mechanisms]
    columns = quality.columns
    down = -(-len(columns) // _ACROSS)
    across = min(len(columns), _ACROSS)
    letters = _LETTERS // across
    titles = shortened([column.title for column in columns], letters)

    def paint(figure: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        panels = figure.subplots(down, across, squeeze=False, sharey=True)
        for place, axes in enumerate(panels.flat):
            if place >= len(columns):
                axes.set_visible(False)
                continue
            axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
            _dots(axes, mechanisms, place, looks, letters)
            _lines(axes, lines, place)
            axes.set_title(titles[place])
            axes.set_ylim(len(mechanisms) - 0.4, -0.6)
        for axes in panels[:, 0]:
            axes.set_yticks(range(len(mechanisms)), short_names(mechanisms))
            for label, row in zip(axes.get_yticklabels(), mechanisms, strict=True):
                label.set_color(MUTED if row.origin == "reference" else INK)
        for axes in panels[-1]:
            axes.set_xlabel("test accuracy, %")
        _legend(figure, lines)

    bars = ""
    if any(cell.spread is not None for row in mechanisms for cell in row.cells):
        bars = " Bars: one standard deviation over seeds, where there are several."
    return Figure(
        id=table.id,
        title=f"Accuracy by task {quality.where}",
        alt=f"Dot plot of the test accuracy of {listing(names(mechanisms))} on "
        f"{listing([column.title for column in columns])}; the table above has the figures.",
        caption=f"What has no figure has no dot.{hollow_note(mechanisms)}{bars}"
        f"{cut_note(mechanisms)}",
        svg=draw(paint, WIDTH, 1.35 + down * (0.55 + 0.25 * len(mechanisms))),
    )


def _dots(axes: Axes, rows: Sequence[Row], place: int, looks: Looks, letters: int) -> None:
    for height, row in enumerate(rows):
        cell = row.cells[place]
        if cell.value is None:
            axes.text(
                0.02,
                height,
                # In full it stands in the table: several endings are wider than a panel.
                shortened([cell.text], letters)[0],
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=8,
                style="italic",
                color=MUTED,
            )
            continue
        style = looks[row.mechanism, row.variant]
        axes.errorbar(
            [100 * cell.value],
            [height],
            xerr=None if cell.spread is None else [100 * cell.spread],
            fmt=style.marker,
            color=style.colour,
            markerfacecolor="white" if row.origin == "reference" else style.colour,
            markersize=6,
            capsize=0,
            zorder=3,
        )


def _lines(axes: Axes, rows: Sequence[Row], place: int) -> None:
    for row in rows:
        value = row.cells[place].value
        if value is not None:
            colour, dash = _line_look(row)
            axes.axvline(100 * value, color=colour, linestyle=dash, linewidth=1.3, zorder=2)


def _line_look(row: Row) -> tuple[str, Any]:
    if row.mechanism:
        return look(row.mechanism).colour, "-"
    return _BASELINES[row.label]


def _legend(figure: Any, rows: Sequence[Row]) -> None:
    from matplotlib.lines import Line2D

    drawn = [row for row in rows if any(cell.value is not None for cell in row.cells)]
    handles = [
        Line2D([], [], color=colour, linestyle=dash, linewidth=1.3)
        for colour, dash in map(_line_look, drawn)
    ]
    if handles:
        labels = shortened([row.label for row in drawn], 28)
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
